"""Names of clusters: made of words or columns that set them apart, kept for as long as they do."""

from __future__ import annotations

from typing import NamedTuple

from kmeander.meaning.memory import Memory, Parts

# Words and columns of a name.
WORDS, COLUMNS = 3, 2


class Candidate(NamedTuple):
    """What a name of one cluster may be made of.

    Parameters
    ----------
    parts : tuple of str
        The best first.
    true : frozenset of str
        All that is true of it, which a name that it has may go on saying.
    n_parts : int
        How many make a name.
    share_true : float
        Share of the parts of a name that must be true for it to stay.
    """

    parts: Parts
    true: frozenset[str]
    n_parts: int
    share_true: float

    def still_fits(self, name: Parts) -> bool:
        """Whether a name that the cluster has may stay."""
        n_true = sum(part in self.true for part in name)
        return n_true > 0 and n_true >= self.share_true * len(name)


def named(candidates: dict[int, Candidate], memory: Memory) -> Memory:
    """Return the memory with a name for each cluster that anything can be said of.

    The user's own names stay, and so do those made before that are still true. A new one gets
    further parts where another cluster has the same.

    Examples
    --------
    >>> hot = Candidate(("temp high", "load low"), frozenset(["temp high", "load low"]), 1, 1.0)
    >>> both = named({0: hot, 1: hot}, Memory())
    >>> both.names
    {0: 'temp high', 1: 'temp high, load low'}
    """
    kept = {
        number: name
        for number, name in memory.named.items()
        if number not in candidates or candidates[number].still_fits(name)
    }
    taken = set(kept.values())
    for number, candidate in sorted(candidates.items()):
        if number in kept or not candidate.parts:
            continue
        n_parts = candidate.n_parts
        while n_parts < len(candidate.parts) and candidate.parts[:n_parts] in taken:
            n_parts += 1
        kept[number] = candidate.parts[:n_parts]
        taken.add(kept[number])
    return memory.called(dict(sorted(kept.items())), memory.given)
