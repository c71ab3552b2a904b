"""Rows to points in plain loops, written from what `Preparation` promises."""

from __future__ import annotations

import math
from typing import Any


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def spread(values: list[float]) -> float:
    """The range of the middle 98 %, as a standard deviation; or that itself."""
    ordered, last = sorted(values), len(values) - 1
    low, high = ordered[math.floor(0.01 * last)], ordered[math.ceil(0.99 * last)]
    if high > low:
        return (high - low) / 4.652695748081682
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def prepared(columns: list[list[Any]], max_levels: int = 20) -> list[list[float]]:
    """Points of a table, column by column; None is missing, and there is one value at least."""
    found: list[list[float]] = []
    for column in columns:
        there = [value for value in column if value is not None]
        if isinstance(there[0], bool):
            fill = round(median([float(value) for value in there]))
            filled_truths = [fill if value is None else value for value in column]
            found.append([math.sqrt(2) * value for value in filled_truths])
        elif isinstance(there[0], str):
            counts = {level: there.count(level) for level in there}
            levels = sorted(counts, key=lambda level: (-counts[level], level))
            own = levels[:max_levels]
            others = sum(counts[level] for level in levels[max_levels:])
            usual = own[0] if counts[own[0]] >= others else None
            filled = [usual if value is None else value for value in column]
            found += [[float(value == level) for value in filled] for level in own]
            found.append([float(value not in own) for value in filled])
        else:
            centre, unit = median(there), spread(there)
            filled_numbers = [centre if value is None else value for value in column]
            found.append([(v - centre) / unit if unit else 0.0 for v in filled_numbers])
    return [list(row) for row in zip(*found, strict=True)]
