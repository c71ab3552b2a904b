"""What Hypothesis draws: small numbers, with ties, twins and gaps."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

# Multiples of 1/8: many ties and equal points, and sums that are exact.
COARSE = st.integers(-40, 40).map(lambda n: n / 8)
# Anything of moderate size whose differences do not vanish when squared.
FINE = st.floats(-1e3, 1e3).map(lambda value: round(value, 6))


def tables(
    rows: st.SearchStrategy[int], columns: int, values: st.SearchStrategy[float]
) -> st.SearchStrategy[NDArray[np.float64]]:
    return rows.flatmap(lambda n: hnp.arrays(np.float64, (n, columns), elements=values))


@st.composite
def problems(
    draw: st.DrawFn, max_rows: int = 16, max_clusters: int = 5
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Points, whole weights (some 0, not all) and centroids."""
    values = draw(st.sampled_from([COARSE, FINE]))
    columns = draw(st.integers(1, 4))
    points = draw(tables(st.integers(1, max_rows), columns, values))
    centroids = draw(tables(st.integers(1, max_clusters), columns, values))
    weights = draw(hnp.arrays(np.int64, len(points), elements=st.integers(0, 3)))
    weights[draw(st.integers(0, len(points) - 1))] += 1
    return points, weights.astype(np.float64), centroids
