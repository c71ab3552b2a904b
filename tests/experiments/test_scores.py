"""Normalised scores and what a box shows of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.cbook import boxplot_stats

from kmeander import InputError
from kmeander.scores import Box, normalise, relative
from tests import naive

ERRORS = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=6)


@given(errors=ERRORS)
def test_normalised_errors_equal_the_plain_loop(errors: list[float]) -> None:
    found = normalise([errors, errors])
    assert found.tolist() == [naive.normalised(errors)] * 2
    assert found.min() == 0


@given(counts=st.lists(st.integers(1, 10**9), min_size=1, max_size=5), factor=st.integers(1, 50))
def test_relative_counts_do_not_depend_on_the_unit(counts: list[int], factor: int) -> None:
    found = relative(counts)
    assert found == pytest.approx([count / min(counts) for count in counts])
    assert relative([factor * count for count in counts]) == pytest.approx(found)


def test_where_the_best_error_is_zero_others_are_infinitely_worse() -> None:
    assert normalise([0.0, 1.0, 0.0]).tolist() == [0.0, math.inf, 0.0]


@pytest.mark.parametrize("bad", [[1.0, math.nan], [-1.0, 2.0], [math.inf, 1.0]])
def test_errors_that_are_none_are_refused(bad: list[float]) -> None:
    with pytest.raises(InputError, match="errors must be finite and not negative"):
        normalise(bad)
    with pytest.raises(InputError, match="counts must be finite and not negative"):
        relative(bad)
    with pytest.raises(InputError, match=r"errors needs at least one method, got shape \(3, 0\)"):
        normalise(np.empty((3, 0)))
    with pytest.raises(InputError, match="counts holds 0, of which nothing is a multiple"):
        relative([0, 1])


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_a_box_is_matplotlibs(values: list[float]) -> None:
    box = Box.of(values)
    (expected,) = boxplot_stats(values)
    assert box.n == len(values)
    assert [box.low, box.q1, box.median, box.q3, box.high] == pytest.approx(
        [expected[key] for key in ("whislo", "q1", "med", "q3", "whishi")]
    )
    assert box.spread == pytest.approx(expected["iqr"])


def test_a_box_of_nothing_and_of_infinities() -> None:
    assert Box.of([]).n == 0 and math.isnan(Box.of([]).median)
    box = Box.of([0.0, 0.0, 0.0, math.inf])
    assert (box.median, box.q1) == (0.0, 0.0)
