"""JSON from outside: whatever it holds, it is read, or refused with a ValueError."""

from __future__ import annotations

import json
from typing import Any


def from_json(text: str | bytes) -> Any:
    """Return what `text` holds; a ValueError says why it cannot be read.

    Text nested a thousand times is valid JSON, but no reader of Python's follows it that far.

    Examples
    --------
    >>> from_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> from_json("[" * 5000 + "]" * 5000)
    Traceback (most recent call last):
    ValueError: it is nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
