"""Who learns the streams: the default, variants of it, and named settings that stay as they are.

A variant is one line: settings that differ from the default's, or constants of modules that are
exchanged while it learns, such as ``switches={"kmeander.kmeans.local_search.CANDIDATES": 10}``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from kmeander.exceptions import InputError
from kmeander.experiments.beyond import contestants
from kmeander.experiments.beyond.contestants import DEFAULT, MINI_BATCH
from kmeander.models.rho_choice import TWO_SPEEDS
from kmeander.models.settings import DEFAULTS, IN_PAPER


@dataclass(frozen=True)
class Variant:
    """Settings of FSKM, by the name that tables give them.

    Parameters
    ----------
    name : str
    settings : mapping
        What is not given is the paper's.
    switches : mapping, optional
        Value of each constant of a module, by its full name, while the variant learns. It is read
        where that module reads it; a module that has imported the constant keeps its own.
    """

    name: str
    settings: Mapping[str, Any]
    switches: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_default(
        cls, name: str, *, switches: Mapping[str, Any] | None = None, **changed: Any
    ) -> Variant:
        """Return the default with some settings or constants exchanged."""
        return cls(name, {**DEFAULTS, **changed}, switches or {})

    @property
    def all_settings(self) -> dict[str, Any]:
        """Every setting that decides what it learns."""
        return {**IN_PAPER, **self.settings, **self.switches}


@contextmanager
def switched(switches: Mapping[str, Any]) -> Iterator[None]:
    """Exchange constants of modules for as long as the block lasts."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for place, value in switches.items():
            where, _, name = place.rpartition(".")
            module = import_module(where)
            if not hasattr(module, name):
                raise InputError(
                    f"{where} has no {name}, which a variant of the default exchanges. Correct "
                    "the name in ABLATIONS."
                )
            before.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)


# Settings that stay what they are, whatever becomes of the default.
EARLIER, AUTO, HUNGARIAN = "earlier default", "auto", "hungarian + swaps"
_EARLIER: dict[str, Any] = {
    "init": "previous", "rho": 0.6, "refine": "swaps", "forgetting": "adaptive",
}  # fmt: skip
FIXED_RHOS = (0.3, 0.6, 0.8, 0.95)
NAMED = {
    variant.name: variant
    for variant in (
        Variant("PC", {**IN_PAPER, "init": "previous"}),
        Variant("HI", IN_PAPER),
        Variant(EARLIER, _EARLIER),
        Variant(AUTO, {**_EARLIER, "rho": "auto"}),
        Variant(HUNGARIAN, {**_EARLIER, "init": "hungarian"}),
        *(
            Variant(f"fixed {rho:g}", {**_EARLIER, "rho": rho, "forgetting": "fixed"})
            for rho in FIXED_RHOS
        ),
    )
}

# What may become the default, and that with one part taken out or exchanged.
ON_TRIAL = "on trial"
_ON_TRIAL: dict[str, Any] = {
    "init": "previous", "rho": "two-speed", "refine": "split-merge", "forgetting": "on-trial",
}  # fmt: skip
_SPEEDS, _TRIAL = "kmeander.models.settings.CHOICES", "kmeander.models.trial"
_SECOND = "kmeander.models.second_memory"

# Variants of the default, each with one part taken out or exchanged: one line each.
ABLATIONS = {
    variant.name: variant
    for variant in (
        *(Variant.of_default(name, **changed) for name, changed in contestants.ABLATIONS.items()),
        Variant(ON_TRIAL, _ON_TRIAL),
        Variant("on trial, no second memory", {**_ON_TRIAL, "forgetting": "fixed"}),
        Variant("on trial, past forgotten for good", {**_ON_TRIAL, "forgetting": "adaptive"}),
        Variant("on trial, rho = 0.6", {**_ON_TRIAL, "rho": 0.6}),
        Variant("on trial, swaps alone", {**_ON_TRIAL, "refine": "swaps"}),
        Variant(
            "on trial, one pair of speeds", _ON_TRIAL, {_SPEEDS: {"two-speed": TWO_SPEEDS[1:2]}}
        ),
        Variant(
            "on trial, fresh always believed",
            _ON_TRIAL,
            {"kmeander.models.trial._BETTER": math.inf},
        ),
        Variant("on trial, no end", _ON_TRIAL, {f"{_SECOND}._LONGEST_TRIAL": math.inf}),
    )
}
OF_DEFAULT = {DEFAULT: Variant.of_default(DEFAULT), **ABLATIONS}

BEST_OF_TEN = "best of ten"
SPARK = {f"Spark, decay {decay:g}": decay for decay in (1.0, 0.9, 0.6)}
PEERS = (MINI_BATCH, *SPARK)

# Who learns which streams, besides the default and its variants.
ON_SYNTHETIC = (BEST_OF_TEN, EARLIER, "HI", HUNGARIAN, "PSKM")
ON_NATURAL = (*NAMED, *PEERS)
ON_RETURNING = (BEST_OF_TEN, EARLIER, "HI")
