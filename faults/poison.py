"""Hostile inputs: every reader, with damaged files and with valid ones that lie."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faults.readers import READERS, Reader
from faults.table import Row

# Inputs in all; those of one reader are tried by processes that end after so many.
N_INPUTS, N_QUICK, AT_ONCE = 1_000_000, 10_000, 5000
N_BYTES = 200  # from which an input is made


def failures(reader: Reader, n_inputs: int, seed: int) -> Iterator[tuple[bytes, int, str]]:
    """Try a reader with inputs of a seed; yield those that end as they should not, and how."""
    found: list[tuple[bytes, int, str]] = []
    n_tried = 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("error")  # of NumPy: something is infinite, or no number

        def try_one(data: bytes, way: int) -> None:
            nonlocal n_tried
            n_tried += 1
            try:
                reader.try_one(data, way, Path(name))
            except Exception:  # whatever it is, it is wrong
                found.append((data, way, traceback.format_exc()))

        quiet = settings(database=None, suppress_health_check=list(HealthCheck), deadline=None)
        tried: Any = quiet(given(reader.inputs, st.integers(0, 11))(try_one))
        rng = np.random.default_rng(seed)
        while n_tried < n_inputs:
            tried.hypothesis.fuzz_one_input(rng.bytes(N_BYTES))
            yield from found
            found.clear()


def _work(name: str, n_inputs: int, seed: int, out: Connection) -> None:
    reader = next(one for one in READERS if one.name == name)
    wrong = list(failures(reader, n_inputs, seed))
    if wrong:
        print(f"{name}, seed {seed}: {wrong[0][2]}", file=sys.stderr)
    out.send(len(wrong))


def rows(quick: bool) -> Iterator[Row]:
    """Try all readers with as many inputs each; a process that dies counts, too."""
    spawn = multiprocessing.get_context("spawn")
    each = -(-(N_QUICK if quick else N_INPUTS) // len(READERS))
    for reader in READERS:
        wrong = 0
        for begin in range(0, each, AT_ONCE):
            ours, theirs = spawn.Pipe(duplex=False)
            n_inputs = min(AT_ONCE, each - begin)
            process = spawn.Process(target=_work, args=(reader.name, n_inputs, begin, theirs))
            process.start()
            theirs.close()
            process.join()
            wrong += ours.recv() if process.exitcode == 0 else 1
        yield Row(f"hostile input: {reader.name}", each, wrong=wrong)
