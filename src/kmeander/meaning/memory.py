"""What a model remembers of its clusters beside their points: births, names, words, examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from kmeander.arrays import Centroids, Labels
from kmeander.exceptions import InputError, shown
from kmeander.kmeans.lloyd import distances_to
from kmeander.kmeans.metric import Metric
from kmeander.meaning.examples import Examples
from kmeander.meaning.words import WordCounts
from kmeander.records import Batch, Ids

LONGEST_NAME = 100

Parts = tuple[str, ...]  # of a name


class Birth(NamedTuple):
    """The first batch of a cluster, and when its first row happened, where that is known."""

    batch: int
    time: str | None = None


class LearnedRows(NamedTuple):
    """What a batch became: where its points are now."""

    labels: Labels
    centroids: Centroids
    ids: Ids
    metric: Metric
    n_batches: int  # in the window
    kept: float  # share of their weight that the rows before it kept
    n_threads: int


class Memory(NamedTuple):
    """Everything by id. Never changed: each batch makes a new one.

    Parameters
    ----------
    births : mapping of int to Birth
    named : mapping of int to tuple of str
        Names that were made and shown, as the parts that they consist of.
    given : mapping of int to str
        The user's own; also of ids that do not live yet, or any more.
    words : WordCounts or None
        Where rows have texts.
    examples : Examples or None
        Where rows have captions.
    names : mapping of int to str
        Every name that there is.
    """

    births: Mapping[int, Birth] = {}  # never changed
    named: Mapping[int, Parts] = {}
    given: Mapping[int, str] = {}
    words: WordCounts | None = None
    examples: Examples | None = None
    names: Mapping[int, str] = {}

    def called(self, named: Mapping[int, Parts], given: Mapping[int, str]) -> Memory:
        """Return the memory with these names."""
        made = {number: ", ".join(parts) for number, parts in named.items()}
        return self._replace(named=named, given=given, names={**made, **given})

    def of_clusters(self, known: Iterable[int], living: Iterable[int], batch: Batch) -> Memory:
        """Return the memory once the clusters are others: of those that ended it lets go.

        Parameters
        ----------
        known, living : iterable of int
            Clusters before and after the batch, those that are asleep included.
        batch : Batch
        """
        before, now = set(known), set(living)
        birth = Birth(batch.index, None if batch.times is None else batch.times[0])
        births = {n: self.births[n] for n in sorted(now) if n in self.births}
        named = {number: parts for number, parts in self.named.items() if number in now}
        return self.called(named, self.given)._replace(
            births={**births, **dict.fromkeys(sorted(now - before), birth)},
            words=None if self.words is None else self.words.of(now),
            examples=None if self.examples is None else self.examples.of(now),
        )

    def after(self, batch: Batch, learned: LearnedRows) -> Memory:
        """Return the memory once a batch was learned whose rows have captions."""
        captions = batch.captions
        if captions is None or batch.n_means is not None:
            return self
        squared = distances_to(batch.points, learned.centroids, learned.labels, learned.n_threads)
        examples = (self.examples or Examples()).after(
            batch.index,
            captions,
            learned.ids,
            learned.labels,
            learned.metric.distances(squared),
            learned.n_batches,
        )
        words = self.words
        if captions.texts is not None:
            texts: dict[int, list[tuple[str, float]]] = {}
            weights = np.ones(batch.n_points) if batch.weights is None else batch.weights
            numbers = learned.ids[learned.labels].tolist()
            for row, (number, weight) in enumerate(zip(numbers, weights.tolist(), strict=True)):
                texts.setdefault(number, []).append((captions.said_in(row), weight))
            words = (words or WordCounts()).after(learned.kept, texts)
        return self._replace(words=words, examples=examples)

    def with_names(self, given: Mapping[int, str]) -> Memory:
        """Return the memory with names of the user's own beside those that it has."""
        for number, name in given.items():
            if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
                raise InputError(
                    f"the name of cluster {number} must be text of 1 to {LONGEST_NAME} characters, "
                    f"got {shown(name)}."
                )
        return self.called(self.named, {**self.given, **given})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "births": {str(number): list(birth) for number, birth in self.births.items()},
            "named": {str(number): list(parts) for number, parts in self.named.items()},
            "given": {str(number): name for number, name in self.given.items()},
            "words": None if self.words is None else self.words.to_dict(),
            "examples": None if self.examples is None else self.examples.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Memory:
        """Make a memory of what `to_dict` returned."""
        words, examples = plain.get("words"), plain.get("examples")
        memory = cls(
            {int(number): Birth(*birth) for number, birth in plain["births"].items()},
            words=None if words is None else WordCounts.from_dict(words),
            examples=None if examples is None else Examples.from_dict(examples),
        )
        named = {int(number): tuple(parts) for number, parts in plain["named"].items()}
        return memory.called(named, {int(n): name for n, name in plain["given"].items()})
