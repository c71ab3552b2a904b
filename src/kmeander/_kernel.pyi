# What the compiled kernel promises. Arrays are in C order; `in/out` arrays are written in place.
# A test compares the names and parameters here with those of the module.
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Labels, Masses, Points, Weights

_Cell = tuple[float, float, float]  # share of the points, their mean, their variance

def nearest(
    points: Points,  # in   (n, d)
    centroids: Centroids,  # in   (k, d)
    labels: Labels,  # out  (n,)
    squared: NDArray[np.float64],  # out  (n,)  squared distances to the nearest centroid
    n_threads: int,
) -> None: ...
def distances_to(
    points: Points,  # in   (n, d)
    centroids: Centroids,  # in   (k, d)
    labels: Labels,  # in   (n,)
    squared: NDArray[np.float64],  # out  (n,)  squared distances to the centroid of the label
    n_threads: int,
) -> None: ...

class BatchHandle:
    """A batch as the kernel reads it; it keeps the arrays alive."""

    def __init__(
        self,
        points: Points,  # in   (n, d)
        weights: Weights | None,  # in   (n,)
        mass: float,  # weight of all points
    ) -> None: ...

class WindowHandle:
    """Batches in order of arrival, and what each weighs for its age. Never changed."""

    def __init__(
        self,
        batches: tuple[BatchHandle, ...],  # the oldest first
        decay: Sequence[float],  # in   of each
    ) -> None: ...
    @property
    def decay(self) -> Weights: ...  # (batches,)
    @property
    def n_points(self) -> int: ...
    @property
    def mass(self) -> float: ...  # decayed
    @property
    def n_effective(self) -> float: ...  # points of equal weight whose mean scatters as much
    @property
    def has_weights(self) -> bool: ...

class Bounds:
    """Bounds of the distances of points, at the centroids `snapshot`. Never changed."""

    def __init__(
        self,
        upper: NDArray[np.float32],  # in   (n,) not below the distance to the own centroid
        lower: NDArray[np.float32],  # in   (n,) not above the distance to any other
        snapshot: Centroids,  # in   (k, d)
        axes: NDArray[np.float64] | None = None,  # in   (1 + axes, d) centre, orthonormal axes
    ) -> None: ...
    @property
    def upper(self) -> NDArray[np.float32]: ...
    @property
    def lower(self) -> NDArray[np.float32]: ...
    @property
    def snapshot(self) -> Centroids: ...
    @property
    def axes(self) -> NDArray[np.float64] | None: ...  # by which points were screened

class ClusterSums:
    """Sufficient statistics of each batch and cluster, without decay. Never changed.

    A function of points, weights and labels alone.
    """

    def __init__(
        self,
        masses: NDArray[np.float64],  # in   (batches, k) weight
        sums: NDArray[np.float64],  # in   (batches, k, d) weighted sum of points
        scatter: NDArray[np.float64],  # in   (batches, k) squared distances to the batch's own mean
    ) -> None: ...
    @property
    def masses(self) -> NDArray[np.float64]: ...
    @property
    def sums(self) -> NDArray[np.float64]: ...
    @property
    def scatter(self) -> NDArray[np.float64]: ...

class Partition:
    """Which cluster each point of consecutive batches is in, and what is known. Never changed."""

    def __init__(
        self,
        labels: Labels,  # in   (n,)
        bounds: Bounds | None = None,
        sums: ClusterSums | None = None,
    ) -> None: ...
    @property
    def n_points(self) -> int: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def bounds(self) -> Bounds | None: ...
    @property
    def sums(self) -> ClusterSums | None: ...
    def without(
        self,
        n_batches: int,  # the oldest,
        n_points: int,  # and their points
    ) -> Partition: ...  # shares the arrays
    def of_first_batch(self, n_points: int) -> Partition: ...  # shares the arrays
    def without_sums(self) -> Partition: ...
    def renumbered(
        self,
        order: NDArray[np.int64],  # in   (k,) the cluster that becomes number c
    ) -> Partition: ...  # without sums

def cluster_masses(
    window: WindowHandle,
    partition: Partition,  # in   of the first batches
    masses: Masses,  # out  (k,) decayed
) -> None: ...
def measure(
    batch: BatchHandle,
    centroids: Centroids,  # in   (k, d)
    n_threads: int,
) -> tuple[float, float, Partition]: ...  # mean squared distance, its relative standard error
def seed(
    batch: BatchHandle,
    uniforms: NDArray[np.float64],  # in   (k,)  numbers in [0, 1): one draw each
    chosen: NDArray[np.int64],  # out  (k,)  rows drawn, of which the first n_seeds count
    n_threads: int,
) -> tuple[int, int, Partition]: ...  # n_seeds, distances computed, nearest of the rows drawn
def lloyd(
    window: WindowHandle,
    older: Partition | None,  # in      of all batches, or of all but the newest
    newest: Partition | None,  # in      of the newest
    centroids: Centroids,  # in/out  (k, d)
    cluster_masses: Masses,  # out     (k,) decayed
    before: Centroids | None,  # in      (k, d) other places of the centroids
    moved: NDArray[np.float64] | None,  # out     (k,) how far from there they end
    max_iter: int,
    shift: float,
    on_sphere: bool,
    n_threads: int,
) -> tuple[Partition, int, int, bool, float, float, float, float, list[int]]: ...

# passes, distances computed, converged; sums of squared distances, decayed over the window at the
# start and at the end, and of the newest batch alone at the end; that of the window once more, each
# batch under centroids made without it; clusters seeded anew
def swap(
    window: WindowHandle,
    older: Partition | None,  # in      see lloyd
    newest: Partition | None,
    centroids: Centroids,  # in/out  (k, d)
    uniforms: NDArray[np.float64],  # in      (candidates,) numbers in [0, 1): one draw each
    on_sphere: bool,
    n_threads: int,
) -> tuple[Partition, int, int, list[int]] | None: ...

# swaps, distances computed, clusters swapped; None if not all points are known at the centroids
def exchange(
    window: WindowHandle,
    found: Partition,  # in      of all points, at the centroids
    centroids: Centroids,  # in/out  (k, d)
    uniforms: NDArray[np.float64],  # in      (2 k,) numbers in [0, 1)
    n_threads: int,
) -> tuple[list[int], list[int], int]: ...

# clusters split, clusters whose centroids went there; distances computed
def score_dips(
    window: WindowHandle,
    first: int,  # batches before it are not looked at
    partition: Partition,  # in   of all points
    centroids: Centroids,  # in   (k, d)
    masses: Masses,  # in   (k,)  of the clusters whose means the centroids are
    rows_per_cluster: int,  # newest rows of each cluster that are looked at
    shallow: float,  # bins between hold more than this times the emptier end: no dip
    neighbours: Labels,  # out  (k,)  nearest other cluster, or -1
    as_one: NDArray[np.float64],  # out  (k,)  score of being one cluster with it
    as_two: NDArray[np.float64],  # out  (k,)  score of being two clusters
) -> None: ...
def merge_costs(
    previous: Centroids,  # in   (k, d)
    previous_masses: Masses,  # in   (k,)
    current: Centroids,  # in   (m, d)
    current_masses: Masses,  # in   (m,)
    squared: NDArray[np.float64],  # out  (k, m)  squared distances
    costs: NDArray[np.float64],  # out  (k, m)  Ward's cost of merging each pair
) -> None: ...
def average(
    previous: Centroids,  # in   (k, d)
    previous_masses: Masses,  # in   (k,)
    current: Centroids,  # in   (m, d)
    current_masses: Masses,  # in   (m,)
    partners: NDArray[np.int64],  # in   (k,)  which of the current, or -1
    means: Centroids,  # out  (k, d)  weighted
) -> None: ...
def summarise(
    points: Points,  # in   (n, d)
    weights: Weights | None,  # in   (n,)
    means: Centroids,  # out  (m, d)  of up to m groups
    masses: Masses,  # out  (m,)
) -> tuple[int, float]: ...  # groups, weighted sum of squared distances to their means
def find_variance(
    partition: Partition,  # in   with sums
    points_per_mass: Weights | None,  # in   (batches,)
    is_whole: NDArray[np.bool_] | None,  # in   (batches,) whether scatter tells how points vary
    variance: NDArray[np.float64],  # out  (k,) of the points about the means of their batches
) -> None: ...

class ChangeTest:
    """Cells of a chapter, the batches seen in them, and the noise learned; never changed."""

    def __init__(
        self, counts: Sequence[int], n_independent: float, arrays: Sequence[Weights]
    ) -> None: ...  # of what `saved` returned
    @staticmethod
    def begin(
        window: WindowHandle,
        partition: Partition,  # in   of all its points
        centroids: Centroids,
        period: int,  # of the cycle, in batches; 0 is none
    ) -> ChangeTest: ...  # of the first chapter
    def in_chapter(
        self,
        window: WindowHandle,
        partition: Partition,  # in   of all its points
        centroids: Centroids,
        renewed: Sequence[int],  # cells that hold another cluster than before
        period: int,
    ) -> ChangeTest: ...
    def after(
        self,
        batch: BatchHandle,
        arrived: Partition,  # in   with bounds
        levels: tuple[float, float, float, float],  # for shares, places, spreads, all together
        n_phases: int,  # in the cycle, since the batch before
    ) -> tuple[
        ChangeTest, list[tuple[int, int, int, int, float, float, float]], int
    ]: ...  # with the batch; what changed; far rows
    @property
    def noise(self) -> tuple[float, float, float, int]: ...  # shares, places, spreads; batches
    @property
    def n_in_chapter(self) -> int: ...
    @property
    def period(self) -> int: ...
    @property
    def saved(
        self,
    ) -> tuple[tuple[int, ...], float, tuple[Weights, ...]]: ...  # what it is made of

def flows(
    window: WindowHandle,
    older: Partition | None,  # in   of all batches but the newest, before
    arrived: Partition,  # in   of the newest, before
    found: Partition,  # in   of all, now
    flow: NDArray[np.float64],  # out  (k, k)  decayed weight from each cluster to each
    newest: NDArray[np.float64],  # out  (k, k)  that of the newest batch
) -> None: ...
def explain(
    window: WindowHandle,
    n_batches: int,  # number of the oldest that came before
    partition: Partition,  # in   whose last points are theirs
    within: float,  # what their means hide of their error, decayed
    batch: BatchHandle,  # in   the newest
    arrived: Partition,  # in   of its points
    batch_within: float,  # what its means hide
    centroids: Centroids,  # in   (k, d)
    n_parts: int,  # the most clusters to report
    n_threads: int,
) -> tuple[
    float, list[float], list[float], list[tuple[int, int, _Cell, _Cell]]
]: ...  # difference of the errors; shares of clusters, of columns; cluster, column, before, now
def first_beyond(
    points: Points,  # in   (n, d)
    limit: float,
    copy: Points | None = None,  # out  (n, d) the same values
) -> int: ...  # position of the first value not finite or beyond the limit, or -1
def medians(
    estimates: Sequence[tuple[float, float]],  # in   values and their standard errors
) -> tuple[float, float, float]: ...  # of the values, their deviations from it, the squared errors
def instruction_set() -> str: ...
