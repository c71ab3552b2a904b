"""The Steps of a stream, for a notebook: frames, plots and the report."""

from kmeander.runs.history.record import KEEP, History
from kmeander.runs.history.report import Report

__all__ = ["KEEP", "History", "Report"]
