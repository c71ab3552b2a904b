"""Downsampling for plots: of each stretch of time the batch that stands out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kmeander.page.moments import Moment


def thinned(moments: Sequence[Moment], most: int) -> list[Moment]:
    """Return at most `most` moments: of each stretch that with the largest prequential error.

    So no drift is lost, however long the run. The first and the last are always there.

    Examples
    --------
    >>> thinned([], 5)
    []
    """
    n = len(moments)
    if n <= most:
        return list(moments)
    errors = np.array([moment.prequential for moment in moments])
    errors = np.where(np.isnan(errors), -np.inf, errors)
    edges = np.linspace(1, n - 1, max(most - 2, 1) + 1).astype(int)
    chosen = [0]
    for begin, end in pairwise(edges.tolist()):
        if end > begin:
            chosen.append(begin + int(np.argmax(errors[begin:end])))
    return [moments[place] for place in (*chosen, n - 1)]
