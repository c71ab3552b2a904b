"""What kmeander raises when it cannot go on."""

from __future__ import annotations


class KmeanderError(Exception):
    """Base of all exceptions that kmeander raises on purpose."""


class InputError(KmeanderError, ValueError):
    """An argument or a batch breaks a rule that the message names."""


class InputTypeError(KmeanderError, TypeError):
    """An argument is of a kind that kmeander does not read."""


class CheckpointError(KmeanderError):
    """A checkpoint is damaged, or of a format that this version does not read."""


class StreamError(KmeanderError):
    """A source or an output cannot be reached, or does not hold what it should."""
