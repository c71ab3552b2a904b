"""The net under the models: what comes out of small streams is what is stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.golden import streams

Outcomes = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """What comes out with the instructions that every processor has."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.golden.streams"],
        env={**os.environ, "KMEANDER_ISA": "baseline"},
        capture_output=True,
        check=True,
    )
    pairs = [json.loads(line).popitem() for line in found.stdout.splitlines()]
    return dict(pairs)


@pytest.mark.parametrize("name", streams.STREAMS)
def test_what_comes_out_of_a_stream_is_what_is_stored(name: str, outcomes: Outcomes) -> None:
    """``KMEANDER_ISA=baseline python -m tests.golden.streams --write`` stores it anew."""
    stored = streams.stored(name)
    assert len(outcomes[name]) == len(stored)
    for now, then in zip(outcomes[name], stored, strict=True):
        assert now.keys() == then.keys()
        for field, value in now.items():
            assert_alike(value, then[field], f"{name}, batch {then['index']}, {field}")


def assert_alike(value: Any, expected: Any, place: str) -> None:
    if isinstance(expected, float):
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9), place
    elif isinstance(expected, list):
        assert len(value) == len(expected), place
        for one, other in zip(value, expected, strict=True):
            assert_alike(one, other, place)
    elif isinstance(expected, dict):
        assert value.keys() == expected.keys(), place
        for key, one in value.items():
            assert_alike(one, expected[key], f"{place}.{key}")
    else:
        assert value == expected, place


def test_every_kind_of_step_is_among_the_streams() -> None:
    """A net with a hole is none: each field that can say something does so somewhere."""
    steps = [step for name in streams.STREAMS for step in streams.stored(name)]
    for field in (
        "swapped", "reseeded", "waiting", "why", "n_summarised", "n_means", "drift_z", "noise",
        "n_far", "provisional", "asleep",
    ):  # fmt: skip
        assert any(step[field] for step in steps), field
    assert any(step["history_kept"] < 1 for step in steps)
    assert not all(step["converged"] for step in steps if not step["waiting"])
    kinds = {event["kind"] for step in steps for event in step["events"]}
    assert kinds == {"born", "split", "died", "absorbed", "moved", "grew", "shrank", "drift"}


def test_a_digest_sees_every_stream_apart() -> None:
    digests = [streams.digest(name) for name in streams.STREAMS]
    assert len(set(digests)) == len(digests)
    assert streams.digest("previous") == digests[list(streams.STREAMS).index("previous")]
