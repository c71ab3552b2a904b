"""Words of the texts of clusters: counted with the window, and those that set a cluster apart.

Class-based tf-idf, as in M. Grootendorst, "BERTopic", 2022: all texts of a cluster are one
document, and a word counts for as much of it as it is frequent there and rare among all clusters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

# Entries that are kept, of all clusters together; of one at least and at most.
ENTRIES, FEWEST, MOST = 30_000, 20, 300
# Counts below which a word is forgotten.
NEGLIGIBLE = 0.05
# How many times as frequent as outside a word must be to set a cluster apart.
LIFT = 2.0
# Share of the count of a cluster's most frequent word that a word must have to be named.
SUPPORT = 0.05
# Words of a cluster that its profile names.
NAMED = 10
# Characters of a text that are looked at.
LONGEST_TEXT = 2000

_WORD = re.compile(r"[^\W\d_](?:[\w'.+-]*\w)?")
# Of English; what other languages have is as frequent in all clusters, and so counts for little.
_STOP = frozenset(
    """a about after all also an and any are as at be because been before both but by can could did
    do does doing don't done during each for from had has have he her here his how i if in into is
    isn't it it's its itself just made make makes may me more most my no nor not now of off on once
    only or other our out over own same she should so some such than that the their them then there
    these they this those through to too under until up us use used uses using very via was we were
    what when where which while who why will with without would yet you your""".split()  # noqa: SIM905
)

Counts = Mapping[str, float]


class WordCounts(NamedTuple):
    """How often each word came in the texts of each cluster, by id; decayed as the window is.

    Examples
    --------
    >>> counts = WordCounts().after(1.0, {0: [("Fix typo in docs", 1.0)], 1: [("Add docs", 1.0)]})
    >>> counts.telling([0, 1])
    {0: ('fix', 'typo'), 1: ('add',)}
    """

    by_cluster: Mapping[int, Counts] = {}  # never changed

    def after(self, kept: float, texts: Mapping[int, Sequence[tuple[str, float]]]) -> WordCounts:
        """Return the counts after a batch.

        Parameters
        ----------
        kept : float
            Share of their weight that earlier rows keep.
        texts : mapping of int to sequence of (str, float)
            Texts of each cluster in the batch, with the weights of their rows. A word counts once
            in each.
        """
        clusters = sorted({*self.by_cluster, *texts})
        most = max(FEWEST, min(MOST, ENTRIES // max(1, len(clusters))))
        found: dict[int, Counts] = {}
        for number in clusters:
            counts = {word: kept * old for word, old in self.by_cluster.get(number, {}).items()}
            for text, weight in texts.get(number, ()):
                for word in words_of(text):
                    counts[word] = counts.get(word, 0.0) + weight
            heaviest = sorted(counts.items(), key=_most_first)[:most]
            found[number] = {word: count for word, count in heaviest if count >= NEGLIGIBLE}
        return WordCounts(found)

    def of(self, clusters: Iterable[int]) -> WordCounts:
        """Return the counts of these clusters alone."""
        return WordCounts({n: self.by_cluster[n] for n in sorted(clusters) if n in self.by_cluster})

    def telling(self, clusters: Iterable[int], n_words: int = NAMED) -> dict[int, tuple[str, ...]]:
        """Return the words that set each of the clusters apart from the others, the best first."""
        known = {number: self.by_cluster.get(number, {}) for number in sorted(clusters)}
        overall: dict[str, float] = {}
        for counts in known.values():
            for word, count in counts.items():
                overall[word] = overall.get(word, 0.0) + count
        sizes = {number: math.fsum(counts.values()) for number, counts in known.items()}
        total = math.fsum(sizes.values())
        average = total / max(1, len(sizes))
        found = {}
        for number, counts in known.items():
            size, outside = sizes[number], total - sizes[number]
            heaviest = max(counts.values(), default=0.0)
            scores = {
                word: count / size * math.log1p(average / overall[word])
                for word, count in counts.items()
                if count >= SUPPORT * heaviest
                and count * outside >= LIFT * size * (overall[word] - count)
            }
            best = sorted(scores.items(), key=_most_first)[:n_words]
            found[number] = tuple([word for word, _ in best])
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain lists and numbers."""
        return {
            str(number): [list(counts), list(counts.values())]
            for number, counts in self.by_cluster.items()
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Make counts of what `to_dict` returned."""
        return cls(
            {int(n): dict(zip(words, counts, strict=True)) for n, (words, counts) in plain.items()}
        )


def words_of(text: str) -> list[str]:
    """Return the words of a text, each once, without those that every text has.

    Examples
    --------
    >>> words_of("FIX n_jobs=2 in RandomForest: use pre-commit, don't fix (#1234)")
    ['fix', 'n_jobs', 'randomforest', 'pre-commit']
    """
    found = dict.fromkeys(word.lower() for word in _WORD.findall(text[:LONGEST_TEXT]))
    return [word for word in found if word not in _STOP and len(word) > 1]


def unlike(words: Iterable[str], n_words: int) -> tuple[str, ...]:
    """Return the first of words that are no forms of one another.

    Examples
    --------
    >>> unlike(["test", "tests", "testing", "typo"], 2)
    ('test', 'typo')
    """
    found: list[str] = []
    for word in words:
        if len(found) == n_words:
            break
        if not any(_are_forms(word, other) for other in found):
            found.append(word)
    return tuple(found)


def _are_forms(one: str, other: str) -> bool:
    """Whether two words begin alike, but for an ending."""
    alike = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        alike += 1
    return alike >= 3 and max(len(one), len(other)) - alike <= 3


def _most_first(pair: tuple[str, float]) -> tuple[float, str]:
    return -pair[1], pair[0]
