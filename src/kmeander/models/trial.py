"""Two memories while it is open which forecasts better: what is known of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kmeander.arrays import Centroids
from kmeander.kmeans.stored_window import state_of, window_from
from kmeander.kmeans.window import Window

# Share of its score that a memory keeps at each batch.
_SCORE_KEPT = 0.9
# What the first batches after earlier alarms count at each one more, and by how much the fresh
# memory must have forecast them better to be believed at once.
_TRUST_KEPT, _BETTER = 0.7, 0.98


class Contender(NamedTuple):
    """Batches and what they weigh, and the centroids under them."""

    window: Window
    centroids: Centroids
    expected_error: float | None
    score: float = 0.0  # decayed sum of its errors of the batches since the alarm


class Trial(NamedTuple):
    """What is known beside the memory that answers."""

    other: Contender | None = None
    is_fresh: bool = False  # whether the one that answers began at an alarm
    score: float = 0.0  # of the one that answers
    n_batches: int = 0  # since the alarm
    # Decayed sums of the error of the first batch after each alarm: of the fresh, and the whole.
    first_errors: tuple[float, float] = (0.0, 0.0)

    @property
    def trusts_fresh(self) -> bool:
        """Whether a fresh memory is believed before it has forecast anything."""
        fresh, whole = self.first_errors
        return fresh <= _BETTER * whole

    def state(self, window: Window) -> dict[str, Any] | None:
        """Return everything as arrays and numbers, but for the batches that `window` has, too."""
        if self == Trial():
            return None
        plain: dict[str, Any] = {
            "is_fresh": self.is_fresh,
            "score": self.score,
            "n_batches": self.n_batches,
            "first_errors": list(self.first_errors),
            "other": None,
        }
        if self.other is not None:
            n_shared = self.other.window.n_shared(window)
            plain["other"] = {
                **self.other._asdict(),
                "window": state_of(self.other.window, n_shared),
                "n_shared": n_shared,
            }
        return plain

    @classmethod
    def from_state(cls, plain: Mapping[str, Any] | None, window: Window) -> Trial:
        """Make a trial from what `state` returned."""
        if plain is None:
            return cls()
        other = None
        if plain["other"] is not None:
            known = dict(plain["other"])
            n_shared = known.pop("n_shared")
            newest = window.batches[len(window) - n_shared :]
            known["centroids"].flags.writeable = False
            known["window"] = window_from(known["window"], newest)
            other = Contender(**known)
        return cls(
            other, plain["is_fresh"], plain["score"], plain["n_batches"],
            tuple(plain["first_errors"]),
        )  # fmt: skip

    def after(self, own_error: float, other_error: float) -> Trial:
        """Return what is known once both have forecast a batch."""
        assert self.other is not None
        first = self.first_errors
        if self.n_batches == 0:
            fresh, whole = (own_error, other_error) if self.is_fresh else (other_error, own_error)
            first = (_TRUST_KEPT * first[0] + fresh, _TRUST_KEPT * first[1] + whole)
        return Trial(
            self.other._replace(score=_SCORE_KEPT * self.other.score + other_error),
            self.is_fresh,
            _SCORE_KEPT * self.score + own_error,
            self.n_batches + 1,
            first,
        )
