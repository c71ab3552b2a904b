"""Other ways to notice a change, which judge the same batches as kmeander.

Each gets the false alarms per batch that kmeander is allowed, where it takes a rate.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstwo

from kmeander.arrays import Points
from kmeander.experiments.alarms.independent_rule import ALARM_RATE, IndependentRule
from kmeander.models.fskm import FSKM
from kmeander.records import Step

# Batches that the newest is compared with: as many as the model remembers by default.
_REMEMBERED = 10


class Rival(Protocol):
    """Judges a batch that a model has just learned."""

    def alarms(self, points: Points, step: Step, model: FSKM) -> bool:
        """Return whether the batch differs from those before."""


class KolmogorovSmirnov:
    """Two-sample tests of every column, the newest batch against the ten before (Bonferroni).

    As ``scipy.stats.ks_2samp`` with ``method="asymp"`` decides, in an eighth of the time.
    """

    def __init__(self) -> None:
        self._before: deque[Points] = deque(maxlen=_REMEMBERED)

    def alarms(self, points: Points, step: Step, model: FSKM) -> bool:
        """Return whether the distribution of any column is another one."""
        del step, model
        found = False
        if self._before:
            newest, older = np.sort(points, axis=0), np.sort(np.concatenate(self._before), axis=0)
            size = round(len(newest) * len(older) / (len(newest) + len(older)))
            largest = _largest_gap(size, ALARM_RATE / points.shape[1])
            found = any(
                _gap(newest[:, column], older[:, column]) > largest
                for column in range(points.shape[1])
            )
        self._before.append(points)
        return found


def _gap(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the largest difference of two distribution functions, of sorted values."""
    both = np.concatenate([one, other])
    below = one.searchsorted(both, "right") / len(one)
    below_other = other.searchsorted(both, "right") / len(other)
    return float(np.abs(below - below_other).max())


@lru_cache(maxsize=4096)
def _largest_gap(size: int, level: float) -> float:
    return float(kstwo.isf(level, size))


class AdwinOfError:
    """River's ADWIN on the error of each batch before it is learned."""

    def __init__(self) -> None:
        self._adwin = _adwin(ALARM_RATE)

    def alarms(self, points: Points, step: Step, model: FSKM) -> bool:
        """Return whether the mean of the errors has changed."""
        del points, model
        if step.prequential_error is None:
            return False
        self._adwin.update(step.prequential_error)
        return bool(self._adwin.drift_detected)


class AdwinOfColumns:
    """River's ADWIN on the mean of each column, batch by batch."""

    def __init__(self) -> None:
        self._adwins: list[Any] = []

    def alarms(self, points: Points, step: Step, model: FSKM) -> bool:
        """Return whether the mean of any column has changed."""
        del step, model
        if not self._adwins:
            n_columns = points.shape[1]
            self._adwins = [_adwin(ALARM_RATE / n_columns) for _ in range(n_columns)]
        for adwin, mean in zip(self._adwins, points.mean(axis=0).tolist(), strict=True):
            adwin.update(mean)
        return any(adwin.drift_detected for adwin in self._adwins)


def _adwin(delta: float) -> Any:
    from river.drift import ADWIN

    # Looked at after every value: each is a whole batch.
    return ADWIN(delta=delta, clock=1)


def has_river() -> bool:
    """Return whether river, which only comparisons need, is installed."""
    return find_spec("river") is not None


# Column of the records, and the name in tables.
RIVALS = {
    "rule": "independent rows",
    "ks": "KS per column",
    "adwin_error": "ADWIN, error",
    "adwin_columns": "ADWIN, columns",
}


def rivals_of(n_clusters: int) -> dict[str, Rival]:
    """Return a new rival of each kind that can run here."""
    rivals: dict[str, Rival] = {
        "rule": IndependentRule(n_clusters),
        "ks": KolmogorovSmirnov(),
    }
    if has_river():
        rivals |= {"adwin_error": AdwinOfError(), "adwin_columns": AdwinOfColumns()}
    return rivals
