"""What this installation is: the kernel in use, its threads, and versions."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

from kmeander.arguments import THREADS_VARIABLE, thread_count
from kmeander.arrays import INSTRUCTION_SET
from kmeander.exceptions import InputError

_LIBRARIES = ("numpy", "scipy", "scikit-learn")


def show_config(mode: str = "stdout") -> dict[str, Any] | None:
    """Show which kernel is in use, with how many threads, and the versions beside it.

    `KMEANDER_ISA` chooses another instruction set, `KMEANDER_NUM_THREADS` the number of threads;
    results differ between instruction sets by rounding, between numbers of threads not at all.

    Parameters
    ----------
    mode : {"stdout", "dict"}, default="stdout"
        Print it, or return it as a dict.

    Examples
    --------
    >>> show_config("dict")["threads"] >= 1
    True
    """
    if mode not in ("stdout", "dict"):
        raise InputError(f"mode must be 'stdout' or 'dict', got {mode!r}.")
    facts = {
        "kmeander": version("kmeander"),
        "instruction set": INSTRUCTION_SET,
        "threads": thread_count(None),
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
        "machine": f"{platform.machine()}, {platform.system()}",
    }
    if mode == "dict":
        return facts
    notes = {"instruction set": "KMEANDER_ISA", "threads": THREADS_VARIABLE}
    for name, value in facts.items():
        note = f"  ({notes[name]} chooses)" if name in notes else ""
        print(f"{name + ':':<17}{value}{note}")
    return None
