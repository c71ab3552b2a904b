"""What `kmeander.run` returns: a fitted model, the history of the stream, a summary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kmeander.html_cards import card
from kmeander.models import FSKM
from kmeander.runs.history import History
from kmeander.runs.records import RunSummary
from kmeander.storage import model_file

if TYPE_CHECKING:
    from kmeander.estimators import ForgetfulKMeans


@dataclass(eq=False, repr=False)
class Run:
    """What a run learned, and what happened on the way.

    Parameters
    ----------
    learned : FSKM
        The model behind `model`.
    feature_names : tuple of str or None
        Of the columns that it takes; None where the stream had no names.
    history : History
        Its Steps: those of the steps file, also those before it was resumed; without such a file
        the newest in memory.
    summary : RunSummary
        Counts of batches, rows and events since it was started or resumed.

    Attributes
    ----------
    model : ForgetfulKMeans
        Fitted, and independent of the run: it takes rows as the stream had them.
    """

    learned: FSKM
    feature_names: tuple[str, ...] | None
    history: History
    summary: RunSummary

    @cached_property
    def model(self) -> ForgetfulKMeans:
        """The model that was learned, as a fitted estimator."""
        from kmeander.estimators import ForgetfulKMeans
        from kmeander.estimators.forgetful import from_saved

        made = from_saved(model_file.state_of(self.learned, self.feature_names))
        assert isinstance(made, ForgetfulKMeans)
        return made

    def __repr__(self) -> str:
        return f"Run: {self.summary.in_words()}"

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it."""
        last = self.summary.last
        happened = [] if last is None else repr(last).splitlines()
        return card(repr(self), happened)
