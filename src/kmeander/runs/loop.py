"""The loop of a run: resume, learn batch after batch, commit, leave everything complete."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from kmeander.arrays import INSTRUCTION_SET, Points
from kmeander.exceptions import InputError, KmeanderError, argument
from kmeander.kmeans.lloyd import distances_to
from kmeander.models import FSKM
from kmeander.models.settings import Settings
from kmeander.records import Step
from kmeander.runs.beginning import newest_complete, refuse_full_outputs
from kmeander.runs.description import Description
from kmeander.runs.first_look import FirstLook
from kmeander.runs.history import History
from kmeander.runs.operations.activity import COMMIT, LEARN, READ, WRITE, Activity, Snapshot
from kmeander.runs.operations.listener import listening
from kmeander.runs.operations.notices import counted
from kmeander.runs.outputs import closing_of, sinks_of
from kmeander.runs.profiles import with_profiles
from kmeander.runs.records import Commits, Control, Outputs, Progress, RowRules, RunSummary
from kmeander.runs.stored_run import check_run
from kmeander.sinks import LearnedBatch, RejectedRow
from kmeander.sinks.contract import explained
from kmeander.sources import Source
from kmeander.sources.batching import Batches, Batching, BatchRows
from kmeander.sources.block import Block, Position
from kmeander.storage import checkpoint
from kmeander.storage import model_file as saved_model


class StoppedError(KmeanderError):
    """The run was asked to stop before it had anything to do."""


@dataclass(eq=False)
class Runner:
    """One run, put together from its parts; see `run`."""

    source: Source
    model: FSKM
    batching: Batching
    rules: RowRules
    outputs: Outputs
    commits: Commits
    control: Control
    kept: History = field(default_factory=lambda: History(keep=0))
    facts: dict[str, Any] = field(default_factory=dict)
    named: Mapping[int, str] = field(default_factory=dict)  # clusters, by the user
    summary: RunSummary = field(default_factory=RunSummary)

    def run(self, stack: ExitStack) -> RunSummary:
        """Resume or begin, learn batch after batch, and leave everything complete."""
        self._heard_at = time.monotonic()
        self._activity = Activity()
        if self.control.metrics is not None:
            stack.enter_context(listening(self.control.metrics, self._look, self.control.notify))
        self._description = Description(self.source, self.model, self.batching, self.outputs)
        self._first_look = FirstLook(
            self.model.settings.rules,
            may_exclude=self.rules.may_exclude,
            notify=self.control.notify,
        )
        self._first_points: Points | None = None
        self._position: Callable[[], Position] | None = None
        self._is_over = False
        states = self._states()
        if self.commits.folder is not None and self.outputs.model_out is not None:
            with explained(argument("model_out", self.outputs.model_out)):
                checkpoint.clear(self.outputs.model_out)  # of a run that was killed
        try:
            self.source.start(self._tick)
        except StoppedError:
            if not self.control.is_stopped:
                raise InputError(f"{self.source.name} has no rows.") from None
            self.summary.stopped = True
            return self.summary
        position = self._open(states, stack)
        batches = Batches(
            self._blocks(position["source"]),
            self.batching,
            refuse_bad=self.rules.refuse_bad,
            period=position["period"],
            may_exclude=self.rules.may_exclude,
        )
        failure = self._learn_all(batches)
        self.control.notices.drain()
        was_stopped = self.summary.stopped and self.summary.stopped_on is None
        self._is_over = failure is None and not (was_stopped and self.commits.folder is not None)
        self._commit()
        self._tell_news()
        self.summary.deliveries = self.control.notices.counts()
        if failure is not None:
            raise failure
        self._refuse_to_have_done_nothing()
        return self.summary

    def _states(self) -> Iterator[dict[str, Any]] | None:
        """Return the states to go on from, newest first, or None where there is none."""
        if self.commits.folder is None:
            return None
        states = self.commits.folder.states(self.control.notify)
        newest = next(states, None)
        return None if newest is None else chain([newest], states)

    def _open(self, states: Iterator[dict[str, Any]] | None, stack: ExitStack) -> Position:
        """Open the outputs where the newest complete state left them, or anew; return where."""
        folder = self.commits.folder
        self._sinks = sinks_of(self._description, self._facts, in_parts=folder is not None)
        self.summary.words = self._description.words
        state = None
        if states is not None:
            assert folder is not None
            state = newest_complete(
                folder,
                map(self._brought_up, states),
                self._description.identity,
                self._sinks,
                self.control.notify,
            )
            self._resume(state)
        elif folder is not None and not self.outputs.overwrite:
            refuse_full_outputs(folder, self._sinks)
        for name, sink in self._sinks.items():
            sink.open(None if state is None else state["outputs"][name])
            stack.push(closing_of(sink))
        waiting = {} if state is None else state.get("notices", {})
        self.control.notices.open(waiting, self.control.notify)
        self.model.give_names(self.named)
        stack.callback(self.control.notices.close)
        if state is not None:
            position: Position = state["position"]
            self._saved_position, self._saved_besides = position, self._besides()
            return position
        beginning: Position = {"source": self.source.beginning(), "period": None}
        self._save(beginning)  # a topic must know, from its first message, whose it is
        return beginning

    def _refuse_to_have_done_nothing(self) -> None:
        if self.model.n_steps or self.summary.stopped:
            return
        if not self.summary.n_bad:
            raise InputError(f"{self.source.name} has no rows.")
        raise InputError(
            f"{self.source.name}: every row is bad ({self.summary.n_bad:,} were set aside), so "
            f"nothing was learned. With {argument('bad_rows', 'error')} the run stops at the "
            "first and says why."
        )

    def _tick(self) -> None:
        """Give up waiting for the first row when asked to stop, or when nothing comes."""
        if self.control.is_stopped or self._is_idle():
            raise StoppedError("stopped before the first row came.")

    def _is_idle(self) -> bool:
        """Whether nothing has come for so long that the stream counts as ended."""
        if (
            self.control.idle_exit is None
            or time.monotonic() - self._heard_at < self.control.idle_exit
        ):
            return False
        if self.source.is_at_end():
            return True
        self._heard_at = time.monotonic()
        return False

    def _blocks(self, position: Position | None) -> Iterator[Block | None]:
        """Yield what the source yields, until it has been silent for too long."""
        self._heard_at = time.monotonic()
        for block in self.source.blocks(position):
            if block is not None:
                self._heard_at = time.monotonic()
                self._activity.hear()
            elif self._is_idle():
                return
            yield block

    def _learn_all(self, batches: Batches) -> Exception | None:
        """Learn until the stream ends, and return what ended it, if that was an error.

        All complete batches before an error are learned, so that they can be committed.
        """
        batches_left = iter(batches)
        while True:
            self._activity.enter(READ)
            try:
                rows = next(batches_left, _END)
            except KmeanderError as error:
                return error
            if rows is _END:
                return None
            if self.control.is_stopped:
                self.summary.stopped = True
                self.summary.n_waiting = batches.n_waiting if rows is None else 0
                return None
            if rows is not None:
                step = self._learn(rows)
                if step is not None and self.control.on_step is not None:
                    try:
                        self.control.on_step(step)
                    except Exception as error:  # raised once all is committed
                        return error
            self._show()
            if self.summary.stopped_on is not None:
                self.summary.stopped = True
                return None

    def _learn(self, rows: BatchRows) -> Step | None:
        step, points = None, rows.points
        if len(points):
            self._activity.enter(LEARN)
            if self.model.n_steps == 0 and self.control.on_first_rows is not None:
                self.control.on_first_rows(len(points))
            step = self.model.learn(
                rows.table,
                rows.weights,
                elapsed=rows.elapsed,
                times=rows.times,
                captions=rows.captions,
            )
            step = with_profiles(self.model, step, self._description.known_columns())
            newest = self.model.points
            if newest is not None:
                points = newest
            elif self._description.preparation is not None:
                points = self._description.preparation.prepared(rows.table).points
            self._first_points = points if step.index == 0 else None
            fitted = self._description.preparation
            self._first_look.see(rows.table, fitted, is_first=step.index == 0)
            if self.kept.keeps and step.index == 0:
                self._facts()
            self.summary.add(step)
            if self.model.settings.season is None:
                self.summary.cycles.add(step)
            self.kept.append(step)
            self.summary.n_distinct = self.model.n_distinct
        self.summary.n_bad += len(rows.bad)
        self.summary.n_late += rows.n_late
        self._activity.enter(WRITE)
        learned = self._learned_batch(rows, step, points)
        for sink in self._sinks.values():
            sink.write(learned)
        self._position = rows.position
        if step is not None:
            self._take_notice(step)
        is_due = step is not None and self.model.n_steps % self.commits.every == 0
        if self.commits.folder is not None and is_due:
            self._commit()
        return step

    def _take_notice(self, step: Step) -> None:
        """Tell whom it concerns what happened, and whether the run ends with it."""
        self.control.notices.take(step, self.source.identity, self._description.words_of)
        named = counted(step, self.control.stop_on)
        self.summary.stopped_on = named[0] if named else None

    def _learned_batch(self, rows: BatchRows, step: Step | None, points: Points) -> LearnedBatch:
        labels = distances = None
        centroids, clusters = self.model.centroids, self.model.labels
        if "assignments" in self._sinks and len(points) and centroids is not None:
            assert clusters is not None
            assert self.model.cluster_ids is not None
            labels = self.model.cluster_ids[clusters]
            limits = self.model.settings.limits
            squared = distances_to(points, centroids, clusters, limits.threads)
            distances = limits.metric.distances(squared)
        rejected_rows = [
            RejectedRow(
                {"source": bad.place.source, bad.place.unit: bad.place.number},
                bad.reason.text,
                bad.text,
            )
            for bad in rows.bad
        ]
        return LearnedBatch(step, rows.keys, rows.origin, labels, distances, rejected_rows)

    def _show(self) -> None:
        self._tell_news()
        if self.control.on_progress is not None or self.control.metrics is not None:
            self._activity.lag = self.source.lag()
        if self.control.on_progress is not None:
            activity = self._activity
            shown = Progress(self.summary, self.source.share_read(), activity.lag, activity.status)
            self.control.on_progress(shown)

    def _tell_news(self) -> None:
        for said in self.control.notices.news():
            self.control.notify(said)

    def _look(self) -> Snapshot:
        """Return the run as it is now; called from other threads."""
        return self.summary.snapshot(self._activity, self.control.notices.counts())

    def _facts(self) -> dict[str, Any]:
        if self._first_points is not None and not self.facts:
            self.facts.update(self._description.facts(self._first_points))
        return self.facts

    def _brought_up(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return a state of before there were preparations and metrics as one of now."""
        assert self.commits.folder is not None
        check_run(state, self._sinks, self.commits.folder)
        state = saved_model.with_preparation(state, self.source.selection.features)
        state["identity"].setdefault("metric", Settings.metric)
        if "prepare" not in state["identity"]:
            prepare = FSKM.from_state(state["model"]).settings.prepare
            self.model.settings = replace(self.model.settings, prepare=prepare)
            state["identity"]["prepare"] = self._description.settings()["prepare"]
        return state

    def _resume(self, state: dict[str, Any]) -> None:
        """Take over what a checkpoint holds."""
        assert self.commits.folder is not None
        known = FSKM.from_state(state["model"])
        if state["instruction_set"] != INSTRUCTION_SET:
            self.control.notify(
                f"The checkpoint was written by the {state['instruction_set']} kernel, this is the "
                f"{INSTRUCTION_SET} one: results agree to rounding, not to the last bit."
            )
        self.source.verify(state["position"]["source"])
        before = known.settings.to_dict()
        for name, value in self._description.settings().items():
            if name != "random_state" and before[name] != value:
                self.control.notify(
                    f"{argument(name)} changes from {before[name]} to {value} with this batch."
                )
        self.summary.events_since_end.update(state.get("events_since_end", {}))
        self._activity.commit()
        self.model.take_over(known)
        if self.model.n_steps:
            self.summary.resumed_at = self.model.n_steps
            self.control.notify(
                f"Going on after batch {self.model.n_steps} of {self.commits.folder.path}."
            )

    def _commit(self) -> None:
        """Make everything so far last, in one step: what comes after is cut back on restart."""
        if self._position is None:
            if self.commits.folder is not None and self._besides() != self._saved_besides:
                self._save(self._saved_position)
            return
        self._activity.enter(COMMIT)
        position = self._position()
        self.source.verify(position["source"])
        self._save_model()
        self._save(position)
        if self.commits.folder is not None:
            self.source.committed(position["source"])
        self._position = None

    def _save(self, position: Position) -> None:
        """Make all outputs last, then the checkpoint that knows where they end."""
        ends = {name: sink.commit() for name, sink in self._sinks.items()}
        if self.commits.folder is None:
            return
        besides = self._besides()
        self.commits.folder.save(
            {
                "kind": "run",
                "identity": self._description.identity(),
                "instruction_set": INSTRUCTION_SET,
                "model": self.model.state(),
                "position": position,
                "outputs": ends,
                **besides,
            }
        )
        self._saved_position, self._saved_besides = position, besides
        self._activity.commit()

    def _besides(self) -> dict[str, Any]:
        """Return what a checkpoint holds of events: how many, and which were not delivered."""
        counts = {} if self._is_over else dict(self.summary.events_since_end)
        waiting = {name: texts for name, texts in self.control.notices.waiting().items() if texts}
        found = {"events_since_end": counts, "notices": waiting}
        return {name: value for name, value in found.items() if value}

    def _save_model(self) -> None:
        path = self.outputs.model_out
        if path is None:
            return
        with explained(argument("model_out", path)):
            saved_model.write(path, self.model, self.source.selection.features)


_END: Any = object()
