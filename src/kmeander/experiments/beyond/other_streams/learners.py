"""Contestants by name: the default and its variants, named settings, PSKM, and peers."""

from __future__ import annotations

from typing import Any

from kmeander.arrays import Centroids
from kmeander.experiments.beyond import contestants
from kmeander.experiments.beyond.contestants import (
    MINI_BATCH,
    RIVER,
    Contestant,
    Learned,
    ModelContestant,
    Peer,
    timed,
)
from kmeander.experiments.beyond.other_streams.spark_rule import SparkRule
from kmeander.experiments.beyond.other_streams.variants import (
    NAMED,
    OF_DEFAULT,
    SPARK,
    Variant,
    switched,
)
from kmeander.models import FSKM
from kmeander.records import Batch


def contestant(name: str, n_clusters: int, seed: int, n_threads: int | None = 1) -> Contestant:
    """Return a new contestant."""
    variant = {**NAMED, **OF_DEFAULT}.get(name)
    if variant is not None:
        return of_variant(variant, n_clusters, seed, n_threads)
    if name in SPARK:
        return _Spark(n_clusters, SPARK[name], seed)
    if name in ("PSKM", MINI_BATCH, RIVER):
        return contestants.contestant(name, n_clusters, 1.0, seed, n_threads)
    raise KeyError(name)


def of_variant(
    variant: Variant, n_clusters: int, seed: int, n_threads: int | None = 1
) -> Contestant:
    """Return a new contestant with these settings."""
    return _Switched(variant, n_clusters, seed, n_threads)


class _Switched:
    """A model of kmeander, some of whose constants are exchanged while it learns."""

    def __init__(self, variant: Variant, n_clusters: int, seed: int, n_threads: int | None) -> None:
        self.switches = variant.switches
        settings: dict[str, Any] = dict(variant.settings)
        with switched(self.switches):
            model = FSKM(n_clusters, **settings, n_threads=n_threads, random_state=seed)
        self.inner = ModelContestant(model)

    def learn(self, batch: Batch) -> Learned:
        """Learn a batch and say what came of it."""
        with switched(self.switches):
            return self.inner.learn(batch)


class _Spark(Peer):
    """Spark's rule."""

    def __init__(self, n_clusters: int, decay: float, seed: int) -> None:
        super().__init__(n_clusters)
        self.model = SparkRule(n_clusters, decay, seed)

    def _spent(self, batch: Batch) -> float:
        return timed(lambda: self.model.learn(batch.points))[0]

    def _centroids(self, n_columns: int) -> Centroids:  # noqa: ARG002  # river's needs it
        return self.model.centroids
