"""What in the first rows of a run is likely to spoil its clusters, said once."""

from __future__ import annotations

from collections.abc import Callable

from kmeander.preparation import FittedPreparation, Preparation, Rows, joined
from kmeander.runs.profile import ENOUGH, warnings_of


class FirstLook:
    """Looks at the first batches of a stream, until there are rows enough to judge.

    Parameters
    ----------
    rules : Preparation, optional
        How rows are prepared; without it they are learned as they are.
    may_exclude : bool
        Whether columns can be left out: none was asked for by name.
    notify : callable
        Given each sentence.
    """

    def __init__(
        self, rules: Preparation | None, *, may_exclude: bool, notify: Callable[[str], None]
    ) -> None:
        self._rules = rules
        self._may_exclude = may_exclude
        self._notify = notify
        self._parts: list[Rows] = []

    def see(self, rows: Rows, fitted: FittedPreparation | None, *, is_first: bool) -> None:
        """Take a batch, which `fitted` has prepared; one that comes after a restart is no first."""
        if not is_first and not self._parts:
            return
        self._parts.append(rows)
        if sum(map(len, self._parts)) < ENOUGH:
            return
        first, self._parts = joined(self._parts), []
        plans = None if fitted is None else fitted.plans
        for warned in warnings_of(first, self._rules, plans, may_exclude=self._may_exclude):
            said = str(warned)
            self._notify(said[:1].upper() + said[1:])
