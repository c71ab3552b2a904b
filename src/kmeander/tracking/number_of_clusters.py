"""The criterion for K: which clusters hold two, and which pairs are one.

Two groups of rows are two clusters where both hold, on the line through their middles:

- there is a valley: fewer rows between the two peaks than at the lower one, beyond chance;
- cutting them apart lowers the error by more than it lowers that of one homogeneous cluster.

docs/explanation/number-of-clusters.md derives both. Rows without modes show neither.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kmeander.arrays import Centroids, Masses
from kmeander.kmeans.window import Window
from kmeander.records import Noise
from kmeander.tracking.lasting import LASTING_SHARE
from kmeander.tracking.modality import ROWS_PER_CLUSTER, DipScores, score_dips

Values = NDArray[np.float64]

# Batches that weigh less than this share of the newest are not looked at.
LEAST_DECAY = 0.2
# A cluster holds two beyond these scores: of the valley, and of the error that a cut saves.
VALLEY, SAVING = 1.3, 0.5
# A pair is one where its valley is filled beyond this score and a cut saves no more than this one.
FILLED, SAVED = 0.7, 1.5
# Beyond this score of its own valley nothing is said of a cluster and its neighbour.
DOUBT = 1.645
# Clusters that have just been parted must not look like one even by this score.
DOUBTFUL = 0.3
# In a first batch, whose rows are few, pairs are one that are not clearly two.
FIRST_FILLED = -0.5
# Nor one that has just been made of two like two.
DOUBTFUL_TWO = 1.0
# Rows that each of two parts must have.
LEAST_ROWS = 8
# Rows from which the direction of a cut is found.
_DIRECTION_ROWS = 64
_POWER_STEPS = 4
# Whose multiples have no period: readings of devices come by turns.
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0
_CUT_STEPS = 6


class AgainstK(NamedTuple):
    """Clusters that speak against K, the clearest first."""

    holds_two: tuple[int, ...] = ()
    are_one: tuple[tuple[int, int], ...] = ()


def judge(window: Window, centroids: Centroids, masses: Masses, noise: float = 1.0) -> AgainstK:
    """Return what speaks against the number of clusters of a window, partitioned by `centroids`.

    Parameters
    ----------
    window : Window
    centroids : ndarray of shape (n_clusters, n_features)
    masses : ndarray of shape (n_clusters,)
    noise : float, default=1.0
        How many rows say as much as one would if rows were independent; see `noise_of`.

    Examples
    --------
    >>> from kmeander import _kernel
    >>> half, far = np.linspace(0.0, 1.0, 200)[:, np.newaxis], 50.0
    >>> points = np.concatenate([half, half + 1.0, half + far, half + far + 5.0])
    >>> labels = np.repeat(np.array([0, 1, 2, 2], dtype=np.int32), 200)
    >>> window = Window(0.5).joined_by(points, None, None).divided(_kernel.Partition(labels))
    >>> judge(window, np.array([[0.5], [1.5], [53.0]]), np.array([200.0, 200.0, 400.0]))
    AgainstK(holds_two=(2,), are_one=((0, 1),))
    """
    dips = score_dips(window, centroids, masses, LEAST_DECAY)
    least = sqrt(noise)
    two = [
        (-dips.as_two.item(row), row)
        for row in np.flatnonzero(dips.as_two > VALLEY * least).tolist()
        if saving_within(rows_of(window, row)) > SAVING * least
    ]
    one = [
        (-score, pair)
        for score, pair in _filled_pairs(dips, FILLED * least, DOUBT * least)
        if saving_between(window, centroids, pair) <= SAVED * least
    ]
    return AgainstK(tuple(row for _, row in sorted(two)), tuple(pair for _, pair in sorted(one)))


def noise_of(noise: Noise) -> float:
    """Return how many rows say as much as one, as far as the stream has shown it."""
    return max(1.0, noise.share, noise.place)


def are_apart(window: Window, centroids: Centroids, masses: Masses, rows: tuple[int, ...]) -> bool:
    """Whether none of the clusters in `rows` looks like one with its nearest neighbour."""
    dips = score_dips(window, centroids, masses, LEAST_DECAY)
    return not any(set(pair) & set(rows) for _, pair in _filled_pairs(dips, DOUBTFUL, DOUBTFUL_TWO))


def holds_two(window: Window, centroids: Centroids, masses: Masses, row: int) -> bool:
    """Whether a cluster that has just been made of two looks like two after all."""
    dips = score_dips(window, centroids, masses, LEAST_DECAY)
    return dips.as_two.item(row) > DOUBTFUL_TWO and saving_within(rows_of(window, row)) > 0


def least_share(n_clusters: int) -> float:
    """Return the share of the rows below which a part is no cluster, but some rows apart."""
    return min(LASTING_SHARE, 0.5 / n_clusters)


def most_alike(window: Window, centroids: Centroids, masses: Masses) -> tuple[int, int] | None:
    """Return the pair of which it is surest that it is one; None where all look like two."""
    dips = score_dips(window, centroids, masses, LEAST_DECAY)
    pairs = [
        (score, pair)
        for score, pair in _filled_pairs(dips, FIRST_FILLED, DOUBT)
        if saving_between(window, centroids, pair) <= SAVED
    ]
    return max(pairs)[1] if pairs else None


def _filled_pairs(
    dips: DipScores, beyond: float, doubt: float
) -> list[tuple[float, tuple[int, int]]]:
    """Return neighbours whose valley is filled beyond a score, each pair once.

    A cluster that may itself be two has its centroid between them, which is no peak to compare
    with: nothing is said of it.
    """
    found = {}
    for row in np.flatnonzero(dips.as_one > beyond).tolist():
        other = int(dips.neighbours[row])
        if max(dips.as_two[row], dips.as_two[other]) > doubt:
            continue
        found[min(row, other), max(row, other)] = dips.as_one.item(row)
    return [(score, pair) for pair, score in found.items()]


def rows_of(window: Window, row: int) -> tuple[Values, Values]:
    """Return the newest rows of a cluster, the newest first, and their weights."""
    points, weights, n_rows = [], [], 0
    least = LEAST_DECAY * window.decay.item(-1)
    labelled = zip(window.batches, window.labels, window.decay.tolist(), strict=True)
    for batch, labels, decay in reversed(list(labelled)):
        if decay < least or n_rows >= ROWS_PER_CLUSTER:
            break
        of_batch = np.flatnonzero(labels == row)[::-1][: ROWS_PER_CLUSTER - n_rows]
        points.append(batch.points[of_batch].astype(np.float64))
        weights.append(batch.weights_or_ones[of_batch])
        n_rows += len(of_batch)
    return np.concatenate(points), np.concatenate(weights)


def saving_within(rows: tuple[Values, Values]) -> float:
    """Score what cutting a cluster in two saves, beyond what it saves of a homogeneous one.

    The cut is found on half of the rows and judged on the other half, and the other way round:
    in many columns some cut looks well on the rows that it was made for.
    """
    points, weights = rows
    return _judged_elsewhere(points, weights, _scattered(len(points), 0.5))


def saving_between(window: Window, centroids: Centroids, pair: tuple[int, int]) -> float:
    """Score what keeping two clusters apart saves, beyond what it saves of a homogeneous one.

    The line between them has been made for these very rows, as the cut has. So what counts is the
    lesser of that and of what a cut saves that is judged on other rows.
    """
    one, other = (rows_of(window, row) for row in pair)
    way = centroids[pair[1]] - centroids[pair[0]]
    size = np.abs(way).max()
    if not size > 0:
        return -np.inf
    way = way / size
    middle = centroids[pair[0]] + 0.5 * (centroids[pair[1]] - centroids[pair[0]])
    points = np.concatenate([one[0], other[0]])
    weights = np.concatenate([one[1], other[1]])
    is_first = np.concatenate([_scattered(len(one[1]), 0.5), _scattered(len(other[1]), 0.5)])
    along = _saving(_along(points - middle, way), weights, 0.0)
    return min(along, _judged_elsewhere(points, weights, is_first))


class Halves(NamedTuple):
    """The means of two parts of a cluster, the heavier first, and the share of the lighter."""

    means: Centroids
    share: float


def halves(window: Window, row: int) -> Halves | None:
    """Return the two parts of a cluster that 2-means on a line finds; None where it has none."""
    points, weights = rows_of(window, row)
    direction = _direction(points) if len(points) > 1 else None
    if direction is None:
        return None
    places = _along(points, direction)
    above = places > _cut(places, weights)
    if above.all() or not above.any():
        return None
    masses = [float(weights[side].sum()) for side in (~above, above)]
    means = [
        (weights[side][:, np.newaxis] * (points[side] - points[0])).sum(axis=0) / mass + points[0]
        for side, mass in zip((~above, above), masses, strict=True)
    ]
    order = (0, 1) if masses[0] >= masses[1] else (1, 0)
    return Halves(np.array([means[place] for place in order]), min(masses) / sum(masses))


def most_saved(share: float) -> float:
    """Return the share of its variance that cutting one homogeneous cluster saves at most.

    `share` of it lies on one side of the cut. Of shapes without a valley the two that save most
    are the flat one, ``3 p (1 - p)``, and that with the longest tail on one side, the exponential,
    ``p log(p)**2 / (1 - p)``.

    Examples
    --------
    >>> round(most_saved(0.5), 3), round(most_saved(0.2), 3)
    (0.75, 0.648)
    """
    share = min(share, 1.0 - share)
    if not share > 0:
        return 1.0
    return max(3.0 * share * (1.0 - share), share * log(share) ** 2 / (1.0 - share))


def _judged_elsewhere(points: Values, weights: Values, is_first: NDArray[np.bool_]) -> float:
    """Score a cut by the rows of one half that was found on those of the other, both ways."""
    score = 0.0
    for made_for in (is_first, ~is_first):
        direction = _direction(points[made_for]) if made_for.any() else None
        if direction is None:
            return -np.inf
        cut = _cut(_along(points[made_for], direction), weights[made_for])
        score += _saving(_along(points[~made_for], direction), weights[~made_for], cut)
    return score / sqrt(2.0)


def _scattered(n: int, share: float) -> NDArray[np.bool_]:
    """Choose that share of n rows, whatever the period with which rows come by turns."""
    return np.arange(n) * _GOLDEN % 1.0 < share


def _saving(places: Values, weights: Values, cut: float) -> float:
    """Score how far a cut saves more than `most_saved`: the mean over the rows by its own error."""
    above = places > cut
    if min(np.count_nonzero(above), np.count_nonzero(~above)) < LEAST_ROWS // 2:
        return -np.inf
    total = weights.sum()
    share = float(weights[above].sum() / total)
    if not 0 < share < 1:
        return -np.inf
    mean = float((weights * places).sum() / total)
    means = [float((weights * places)[s].sum() / weights[s].sum()) for s in (~above, above)]
    within = np.square(places - np.where(above, means[1], means[0]))
    rest = weights * ((1.0 - most_saved(share)) * np.square(places - mean) - within)
    scale = float(np.abs(rest).max())
    if not scale > 0:
        return -np.inf
    rest = rest / scale
    spread = sqrt(float(np.square(rest - rest.mean()).sum()))
    return float(rest.sum()) / max(spread, 1e-12)


def _direction(points: Values) -> Values | None:
    """Return the direction in which rows vary most; None where they do not vary."""
    some = points[_scattered(len(points), _DIRECTION_ROWS / max(len(points), 1))]
    some = some - some.mean(axis=0)
    size = float(np.abs(some).max()) if len(some) else 0.0
    if not (size > 0 and np.isfinite(size)):
        return None
    some = some / size
    direction: Values = some[int(np.argmax(np.square(some).sum(axis=1)))]
    for _ in range(_POWER_STEPS):
        direction = (some * _along(some, direction)[:, np.newaxis]).sum(axis=0)
        length = sqrt(float(np.square(direction).sum()))
        if not length > 0:
            return None
        direction = direction / length
    return direction


def _along(points: Values, direction: Values) -> Values:
    # Not points @ direction: BLAS may split that by its own number of threads.
    along: Values = np.einsum("ij,j->i", points, direction)
    return along


def _cut(places: Values, weights: Values) -> float:
    """Return where 2-means on a line cuts."""
    cut = float((weights * places).sum() / weights.sum())
    for _ in range(_CUT_STEPS):
        above = places > cut
        if above.all() or not above.any():
            break
        low, high = (
            float((weights[side] * places[side]).sum() / max(float(weights[side].sum()), 1e-300))
            for side in (~above, above)
        )
        cut = low + 0.5 * (high - low)
    return cut
