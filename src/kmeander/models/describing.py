"""What a model remembers of its clusters for people, and what it says of them."""

from __future__ import annotations

from collections.abc import Sequence

from kmeander.exceptions import InputError
from kmeander.kmeans.lloyd import Limits
from kmeander.meaning.describe import KnownClusters, describe
from kmeander.meaning.memory import LearnedRows, Memory
from kmeander.models.state import State
from kmeander.records import Batch, Profiles
from kmeander.tracking.lineage import Lineage
from kmeander.tracking.tracker import Tracked


def remembered(known: State, batch: Batch, tracked: Tracked, limits: Limits) -> Memory:
    """Return what is remembered of the clusters once a batch is learned."""
    memory, before, lineage = known.memory, known.lineage, tracked.lineage
    if before is None or before.ids is not lineage.ids or before.asleep is not lineage.asleep:
        memory = memory.of_clusters(_numbers(before), _numbers(lineage), batch)
    if batch.captions is None:
        return memory
    window, mass = tracked.fit.window, known.window.mass if known.window.batches else 0.0
    kept = (window.mass - batch.mass) / mass if mass > 0 else 0.0
    learned = LearnedRows(
        labels=window.newest_labels(batch.n_points),
        centroids=tracked.fit.centroids,
        ids=lineage.ids,
        metric=limits.metric,
        n_batches=window.n_batches,
        kept=min(max(kept, 0.0), 1.0),
        n_threads=limits.threads,
    )
    return memory.after(batch, learned)


def _numbers(lineage: Lineage | None) -> list[int]:
    """Return the ids of all clusters that live, those that are asleep included."""
    if lineage is None:
        return []
    return [*lineage.ids.tolist(), *(one.number for one in lineage.asleep)]


def described(
    known: State, limits: Limits, columns: Sequence[str] | None = None
) -> tuple[Profiles, State]:
    """Return what each cluster is, and what is known once names have been made for them."""
    if known.centroids is None or known.lineage is None:
        raise InputError(
            "there are no clusters to describe yet: the stream has not shown as many distinct "
            "points as there are to be clusters."
        )
    profiles, memory = describe(
        KnownClusters(
            window=known.window,
            centroids=known.centroids,
            ids=known.lineage.ids,
            n_steps=known.n_steps,
            metric=limits.metric,
            memory=known.memory,
            noise=None if known.step is None else known.step.noise,
            preparation=known.preparation,
            columns=columns,
            n_threads=limits.threads,
        )
    )
    return profiles, known._replace(memory=memory)


def with_name(known: State, number: int, name: str) -> State:
    """Return what is known once a living cluster has a name of the user's own."""
    living = _numbers(known.lineage)
    if number not in living:
        raise InputError(
            f"there is no cluster {number!r}: the living ones are "
            f"{', '.join(map(str, sorted(living))) or 'none yet'}."
        )
    return known._replace(memory=known.memory.with_names({number: name}))
