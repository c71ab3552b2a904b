"""Lives of clusters: from which batch to which, and how each came and went."""

from __future__ import annotations

from dataclasses import dataclass

from kmeander.records import Step


@dataclass
class Life:
    """From which batch to which a cluster lived, and how it came and went."""

    cluster: int
    begin: int
    end: int
    came: str = "there from the start"
    went: str = ""
    is_told: bool = True  # what is provisional has not been
    first_time: str | None = None  # of the first batch, where that is known


def follow_lives(lives: dict[int, Life], step: Step, *, is_first: bool) -> None:
    """Note who is there at a Step, who came and who went.

    Examples
    --------
    >>> import numpy as np
    >>> from kmeander import Event
    >>> lives = {}
    >>> known = {"n_points": 9, "waiting": False, "rho": 0.6, "n_batches": 1, "mass": 9.0}
    >>> follow_lives(lives, Step(0, **known, ids=np.array([0, 1])), is_first=True)
    >>> step = Step(1, **known, ids=np.array([0, 2]), provisional=(2,), asleep=((1, 0),))
    >>> follow_lives(lives, step, is_first=False)
    >>> [life.came for life in lives.values()], lives[1].went, lives[2].is_told
    (['there from the start', 'there from the start', 'provisional'], 'asleep, part of 0', False)
    """
    assert step.ids is not None
    provisional = set(step.provisional)
    for number in step.ids.tolist():
        life = lives.get(number)
        if life is None:
            life = lives[number] = Life(number, step.index, step.index, first_time=step.first_time)
            if not is_first:
                life.came, life.is_told = "provisional", False
        life.end, life.went = step.index, ""
        life.is_told = life.is_told or number not in provisional
    for number, heir in step.asleep:
        if number in lives:
            lives[number].went = "asleep" if heir < 0 else f"asleep, part of {heir}"
    for number, _ in step.dropped:
        if number in lives:
            lives[number].went = "did not last"
    for event in step.events:
        life = lives.get(event.cluster if event.cluster is not None else -1)
        if life is None:
            continue
        if event.kind in ("born", "split", "returned"):
            life.came = event.words()
        elif event.kind in ("died", "absorbed"):
            life.went = event.words()
