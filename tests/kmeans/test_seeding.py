"""k-means++ where points lie so near that squares of their distances are 0."""

from __future__ import annotations

import numpy as np
import pytest

from kmeander import ForgetfulKMeans, InputError, kmeans_plusplus

TINY = np.array([[0.0], [1.0], [2.0], [3.0]]) * 1e-170


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_differences_whose_squares_are_zero_are_refused(learn: str) -> None:
    """Before, the model waited for points that it could tell apart, for ever and silently."""
    model = ForgetfulKMeans(3, random_state=0)
    with pytest.raises(InputError) as caught:
        getattr(model, learn)(TINY)
    assert str(caught.value) == (
        "X has 4 distinct points of which 1 can be told apart: differences below 1e-160 have "
        "squares that are 0 (the widest column spans 3e-170). Rescale the columns."
    )
    assert not hasattr(model, "n_steps_")
    with pytest.raises(InputError, match="can be told apart"):
        kmeans_plusplus(TINY, 3, random_state=0)


def test_a_few_points_too_near_do_no_harm_while_others_are_awaited() -> None:
    model = ForgetfulKMeans(4, random_state=0)
    model.partial_fit([[0.0], [-0.0], [1e-300], [5.0]])
    assert model.step_.waiting
    assert model.partial_fit([[7.0], [9.0], [11.0]]).predict([[5.1]]) == model.predict([[5.0]])


def test_equal_points_wait_as_before() -> None:
    model = ForgetfulKMeans(2, random_state=0).partial_fit([[0.0], [-0.0], [0.0]])
    assert model.step_.waiting
