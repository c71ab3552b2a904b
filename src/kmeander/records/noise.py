"""What is known of the noise between the batches of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Noise:
    """How much more a stream varies from batch to batch than independent rows would make it vary.

    Each number is a design effect: the mean square of the difference between a batch and those
    before it, over what it would be if rows were independent of one another.

    Parameters
    ----------
    share, place, spread : float
        Of the shares of clusters, of their means, and of the scatter about these.
    n_batches : int
        Batches from which that is known; of a few hundred the oldest count less and less.

    Examples
    --------
    >>> Noise(share=4.6, place=1.02, spread=0.97, n_batches=40).words()
    'shares vary 4.6 times as much between batches as independent rows would; alarms allow for it'
    >>> Noise(1.1, 0.9, 1.0, 7).words()
    'noise between batches is not known yet (7 batches of 20)'
    """

    share: float
    place: float
    spread: float
    n_batches: int

    # Batches after which it is taken to be known.
    ENOUGH: ClassVar[int] = 20
    # Below this a stream varies as independent rows would.
    _NOTABLE: ClassVar[float] = 1.5

    @property
    def is_known(self) -> bool:
        """Whether there were batches enough."""
        return self.n_batches >= self.ENOUGH

    def words(self) -> str:
        """Return it as a sentence."""
        if not self.is_known:
            return (
                f"noise between batches is not known yet ({self.n_batches} batches of "
                f"{self.ENOUGH})"
            )
        named = {"shares": self.share, "means": self.place, "spreads": self.spread}
        notable = [f"{name} vary {times:.2g}" for name, times in named.items()
                   if times >= self._NOTABLE]  # fmt: skip
        if not notable:
            return "batches vary as independent rows would"
        return (
            f"{', '.join(notable)} times as much between batches as independent rows would; "
            "alarms allow for it"
        )
