"""Out of memory: what reaches Python is a MemoryError, and the model is as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

# The room that a step gets grows by half a MiB until one step has enough.
STEPS = textwrap.dedent(
    """
    import pickle, resource, sys
    import numpy as np
    from kmeander import FSKM, Batch

    def used():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[0]) * resource.getpagesize()

    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 60_000, 2)) + rng.integers(3, size=(3, 60_000, 1)) * 9.0
    models = [FSKM(3, rho=0.5, random_state=1, n_threads=1) for _ in range(2)]
    for model in models:
        for index in range(2):
            model.step(Batch(index, points[index]))
    model, undisturbed = models
    expected = undisturbed.step(Batch(2, points[2])).centroids.tobytes()
    before, batch, n_failures = pickle.dumps(model.state()), Batch(2, points[2]), 0
    for room in range(0, 1 << 30, 1 << 19):
        resource.setrlimit(resource.RLIMIT_AS, (used() + room, resource.RLIM_INFINITY))
        try:
            step = model.step(batch)
        except MemoryError:
            step = None
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        if step is not None:
            break
        n_failures += 1
        assert pickle.dumps(model.state()) == before, "the model has changed"
    assert step.centroids.tobytes() == expected
    print(n_failures)
    """
)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_a_step_without_memory_leaves_the_model_as_it_was() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEPS],
        # Large blocks go back at once: else each step would find what the last one freed.
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": str(1 << 16)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
