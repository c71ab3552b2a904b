"""The first clusters of a stream, or what is kept until it has shown enough points."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from kmeander.arguments import generator_for
from kmeander.arrays import Points, frozen
from kmeander.kmeans.seeding import draw_seeds
from kmeander.kmeans.starts import Start
from kmeander.kmeans.window import Window
from kmeander.models.k_choice import first_clusters
from kmeander.models.settings import PrivilegedSettings
from kmeander.models.stages import learn_from, record
from kmeander.models.state import State
from kmeander.records import Batch, Step
from kmeander.tracking.change_test import Chapter
from kmeander.tracking.lineage import Lineage
from kmeander.tracking.tracker import Tracked, variance_of


def begin(
    known: State,
    batch: Batch,
    settings: PrivilegedSettings,
    seed: int,
    begun: float,
    *,
    wait: bool = True,
) -> tuple[State, Step]:
    """Learn the first K distinct points, or keep what there is and wait."""
    points, weights = known.with_waiting(batch)
    n_clusters, limits = settings.clusters.low, settings.limits
    rng = generator_for(seed, batch.index)
    seeds = draw_seeds(points, weights, n_clusters, rng, limits.threads)
    n_surplus = n_clusters - len(seeds.rows)
    if wait and n_surplus > 0:
        # Every point is one of the seeds: they are kept, with the weight each stands for.
        masses = np.bincount(seeds.partition.labels, weights, len(seeds.rows)).astype(np.float64)
        first_time, last_time = batch.times or (None, None)
        step = Step(
            index=batch.index,
            n_points=batch.n_rows,
            n_means=batch.n_means,
            waiting=True,
            rho=known.window.share_kept,
            n_batches=0,
            mass=float(masses.sum()),
            n_distances=seeds.n_distances,
            n_distances_plain=seeds.n_distances_plain,
            first_time=first_time,
            last_time=last_time,
            seconds=perf_counter() - begun,
        )
        kept: Points = points[seeds.rows]
        kept.flags.writeable = False
        learned = State(
            window=known.window,
            n_steps=batch.index + 1,
            n_features=points.shape[1],
            waiting_points=kept,
            waiting_weights=frozen(masses),
            waiting_within=known.within(batch) or 0.0,
            concept=batch.concept,
            step=step,
            rho_choice=known.rho_choice,
            preparation=known.preparation,
            memory=known.memory,
        )
        return learned, step
    # Where there are too few distinct points (fit only) the surplus centroids lie on the first: a
    # tie goes to the lowest index, so they stay without mass.
    surplus = np.repeat(seeds.centroids[:1], n_surplus, axis=0)
    centroids = limits.metric.centroids(np.concatenate([seeds.centroids, surplus]))
    start = Start(centroids, seeds.n_distances, seeds.n_distances_plain)
    partition = seeds.partition if n_surplus == 0 else None
    window = Window(settings.first_rho, tail=settings.tail).joined_by(
        points, weights, partition, known.within(batch)
    )
    found, fit, swapped, rest = learn_from(
        window, start, known, batch.index, settings, seed, known.centroids
    )
    if settings.follows_k:
        fit, swapped = first_clusters(fit, settings.clusters, seed, batch.index, limits), ()
    lineage = Lineage.begun(fit.centroids, batch.index, variance_of(fit))
    chapter = Chapter.first(fit.window, fit.centroids, lineage.ids, settings.season)
    tracked = Tracked(lineage, fit, chapter, swapped)
    return record(known, batch, None, found, tracked, begun, limits, rest=rest)
