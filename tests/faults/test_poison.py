"""Hostile inputs for every reader, a thousand each; ``python -m faults poison`` tries a million."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.poison import N_QUICK, failures
from faults.readers import READERS, Reader

N_EACH = -(-N_QUICK // len(READERS))


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_hostile_input_is_read_set_aside_or_refused(reader: Reader, tmp_path: Path) -> None:
    wrong = next(failures(reader, N_EACH, seed=0), None)
    if wrong is not None:
        data, way, how = wrong
        (tmp_path / "input").write_bytes(data)
        raise AssertionError(f"{tmp_path / 'input'}, read in way {way}: {how}")
