"""What every wheel must pass, on any system, with nothing installed but kmeander itself.

python tests/test_minimal.py
"""

from __future__ import annotations

import pickle

import numpy as np

from kmeander import FSKM, Batch, ForgetfulKMeans, show_config, weighted_lloyd


def stream() -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]], 400, axis=0)
    return [centres + step + rng.normal(size=centres.shape) for step in range(5)]


def test_clusters_are_found_and_followed() -> None:
    model = ForgetfulKMeans(3, random_state=0)
    for points in stream():
        model.partial_fit(points)
    found = model.cluster_centers_[np.argsort(model.cluster_centers_ @ [1.0, 2.0])]
    assert np.abs(found - [[4.0, 4.0], [54.0, 4.0], [4.0, 54.0]]).max() < 2.5
    assert sorted(np.bincount(model.predict(stream()[-1])).tolist()) == [400, 400, 400]


def test_threads_change_nothing() -> None:
    found = {
        weighted_lloyd(stream()[0], stream()[0][::400], n_threads=n).centroids.tobytes()
        for n in (1, 2, 3)
    }
    assert len(found) == 1


def test_a_copy_goes_on_as_the_original_does() -> None:
    model = FSKM(3, random_state=0)
    model.step(Batch(0, stream()[0]))
    copy = pickle.loads(pickle.dumps(model))
    assert copy.step(Batch(1, stream()[1])) == model.step(Batch(1, stream()[1]))


if __name__ == "__main__":
    show_config()
    test_clusters_are_found_and_followed()
    test_threads_change_nothing()
    test_a_copy_goes_on_as_the_original_does()
    print("3 passed, 0 failed")
