"""Events as notices for people and programs elsewhere: CloudEvents in JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kmeander.arguments import list_of_names
from kmeander.events import ALARMS, KINDS, Event
from kmeander.exceptions import ArgumentError, InputError, argument
from kmeander.plain_values import PlainValues, is_text
from kmeander.records import Step
from kmeander.runs.operations.activity import Deliveries
from kmeander.runs.operations.outbox import MOST, Outbox
from kmeander.runs.operations.receivers import Deliver, address_of, poster, runner

# Says an event of a Step in words.
WordsOf = Callable[[Step, Event], list[str]]
# Seconds that the end of a run waits for receivers.
AT_THE_END = 10.0


def checked_kinds(name: str, kinds: Sequence[str]) -> tuple[str, ...]:
    """Return kinds of events, the argument `name`, once all of them are known."""
    list_of_names(name, kinds)
    unknown = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown is not None:
        raise ArgumentError(
            f"{argument(name)} must name kinds of events, of {', '.join(KINDS)}; got {unknown!r}."
        )
    return tuple(kinds)


def counted(step: Step, kinds: Sequence[str]) -> list[str]:
    """Return the kinds of a Step's confirmed events, of those asked for."""
    return [event.kind for event in step.events if event.kind in kinds and not event.unconfirmed]


def notices_of(step: Step, kinds: Sequence[str], source: str, words_of: WordsOf) -> list[str]:
    """Return a notice for each confirmed event of `kinds`, as the text that is sent.

    `source` and `id` of a CloudEvent are its key: the stream; the batch and the number of the event
    in it. Nothing in it depends on the clock.

    Parameters
    ----------
    step : Step
    kinds : sequence of str
    source : str
        The stream.
    words_of : callable

    Examples
    --------
    >>> known = {"n_points": 9, "waiting": False, "rho": 0.6, "n_batches": 1, "mass": 9.0}
    >>> step = Step(7, **known, events=(Event("died", 3), Event("moved", 1, value=2.0, z=8.0)))
    >>> for text in notices_of(step, ["died"], "pumps.csv", lambda _, event: [event.words()]):
    ...     for name, value in json.loads(text).items():
    ...         print(f"{name}: {value}")
    specversion: 1.0
    type: kmeander.died
    source: pumps.csv
    id: 7-0
    datacontenttype: application/json
    data: {'batch': 7, 'number': 0, 'kind': 'died', 'cluster': 3, 'words': ['cluster 3 died']}
    """
    found = []
    for number, event in enumerate(step.events):
        if event.kind not in kinds or event.unconfirmed:
            continue
        times = {"first_time": step.first_time, "last_time": step.last_time}
        notice = {
            "specversion": "1.0",
            "type": f"kmeander.{event.kind}",
            "source": quote(source, safe="/:,@"),
            "id": f"{step.index}-{number}",
            **({} if step.last_time is None else {"time": step.last_time}),
            "datacontenttype": "application/json",
            "data": {
                "batch": step.index,
                "number": number,
                **{name: time for name, time in times.items() if time is not None},
                **event.to_dict(),
                "words": words_of(step, event),
            },
        }
        found.append(json.dumps(notice, allow_nan=False))
    return found


class Notices:
    """All receivers of a run, and what waits for each.

    Parameters
    ----------
    kinds : sequence of str
        The events that are sent.
    url : str, optional
    command : str, optional
    """

    def __init__(
        self, kinds: Sequence[str] = ALARMS, url: str | None = None, command: str | None = None
    ) -> None:
        self._kinds = checked_kinds("notify_on", kinds)
        self._receivers: dict[str, tuple[str, Deliver]] = {}
        if url is not None:
            name = f"{argument('notify')} {address_of(url)}"
            self._receivers["notify"] = (name, poster(url))
        if command is not None:
            self._receivers["on_event"] = (argument("on_event", command), runner(command))
        self._outboxes: dict[str, Outbox] = {}

    def open(self, waiting: Mapping[str, Sequence[str]], tell: Callable[[str], None]) -> None:
        """Begin to deliver, first what an earlier run could not."""
        for name, (receiver, deliver) in self._receivers.items():
            self._outboxes[name] = Outbox(receiver, deliver, waiting.get(name, ()))
        for name, texts in waiting.items():
            if texts and name not in self._receivers:
                tell(
                    f"{len(texts):,} notices of the run before were not delivered, and are "
                    f"dropped: {argument(name)} is not given any more."
                )

    def take(self, step: Step, source: str, words_of: WordsOf) -> None:
        """Take on what a Step tells."""
        if self._outboxes and step.events:
            notices = notices_of(step, self._kinds, source, words_of)
            for outbox in self._outboxes.values():
                outbox.put(notices)

    def waiting(self) -> dict[str, list[str]]:
        """Return what was not delivered yet, by receiver, for a checkpoint."""
        return {name: outbox.waiting() for name, outbox in self._outboxes.items()}

    def counts(self) -> dict[str, Deliveries]:
        """Return how each receiver is getting on."""
        return {name: outbox.counts() for name, outbox in self._outboxes.items()}

    def news(self) -> list[str]:
        """Return sentences for people that were not given yet."""
        return [said for outbox in self._outboxes.values() for said in outbox.news()]

    def drain(self) -> None:
        """Give receivers a moment to take what waits, at the end of a run."""
        until = time.monotonic() + AT_THE_END
        for outbox in self._outboxes.values():
            outbox.drain(until - time.monotonic())

    def close(self) -> None:
        """Deliver no more."""
        for outbox in self._outboxes.values():
            outbox.close()


def check_waiting(given: PlainValues) -> None:
    """Refuse what a checkpoint says of notices where that cannot be."""
    for name in given.names():
        texts = given.items(name, ..., each=is_text, rule="texts")
        if texts is not None and len(texts) > MOST:
            raise InputError(f"it has {len(texts)} notices that wait, of at most {MOST}.")


def said_of(counts: Mapping[str, Deliveries], *, resumable: bool) -> list[str]:
    """Return what is to be said of notices at the end of a run.

    Examples
    --------
    >>> said_of({"notify": Deliveries(3, 1, 2, 0)}, resumable=True)
    ['Notices: 3 delivered, 2 wait for the next run.']
    """
    found: dict[str, Any] = {
        "delivered": sum(one.n_delivered for one in counts.values()),
        "wait for the next run" if resumable else "not delivered": sum(
            one.n_waiting for one in counts.values()
        ),
        "lost, as too many waited": sum(one.n_lost for one in counts.values()),
    }
    told = [f"{number:,} {what}" for what, number in found.items() if number]
    return [f"Notices: {', '.join(told)}."] if told else []
