"""The rivals: the rule for independent rows judges as its plain loops do, KS as SciPy does."""

from __future__ import annotations

from itertools import islice
from math import log, log1p, sqrt

import numpy as np
import pytest
from scipy.stats import ks_2samp

from kmeander import Batch
from kmeander.experiments.alarms.changes import BASES
from kmeander.experiments.alarms.independent_rule import IndependentRule
from kmeander.experiments.alarms.rivals import KolmogorovSmirnov
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.models.fskm import FSKM
from kmeander.models.settings import DEFAULTS
from kmeander.records import Step
from tests import naive_changes


def student_z(squared: float, freedom: float) -> float:
    scale = (8 * freedom + 1) / (8 * freedom + 3)
    return scale * sqrt(freedom * log1p(squared / freedom))


def share_z(newest: float, size: float, before: float, n_before: float) -> float:
    expected = size * (newest + before) / (size + n_before)
    moved = min(0.5, abs(newest - expected))
    newest += moved if newest < expected else -moved
    pooled = (newest + before) / (size + n_before)
    parts = [
        (newest, size * pooled), (size - newest, size * (1 - pooled)),
        (before, n_before * pooled), (n_before - before, n_before * (1 - pooled)),
    ]  # fmt: skip
    return sqrt(max(sum(2 * n * log(n / m) for n, m in parts if n > 0 and m > 0), 0.0))


class PlainRule:
    """The same rule, cluster by cluster."""

    def __init__(self, rule: IndependentRule) -> None:
        self.drift_level, self.level = rule.drift_level, rule.level
        self.since: dict[int, int] = {}
        self.last: Step | None = None

    def alarms(self, step: Step, model: FSKM) -> bool:
        last, self.last = self.last, step
        assert step.ids is not None
        since = [self.since.setdefault(number, step.index) for number in step.ids.tolist()]
        if last is None:
            return False
        found = False
        if step.drift_z is not None and step.drift_z > self.drift_level:
            assert step.drift_epsilon is not None
            found = (
                last.drift_z is None
                or last.drift_z <= self.drift_level
                or step.drift_epsilon > (last.drift_epsilon or 0.0)
            )
        window = model.window
        assert window.partition is not None
        sums = window.partition.sums
        assert sums is not None
        size = float(sums.masses[-1].sum())
        judged = naive_changes.evidence(
            sums.masses.tolist(), sums.sums.tolist(), sums.scatter.tolist(),
            window.decay.tolist(), since, step.index,
        )  # fmt: skip
        for number, of in zip(step.ids.tolist(), judged, strict=True):
            z = [0.0]
            if of["noise"] > 0:
                z.append(student_z(of["squared_shift"] / of["noise"], of["freedom"]))
            if of["points_before"] > 0:
                before = of["share_before"] * of["points_before"]
                z.append(share_z(of["share"] * size, size, before, of["points_before"]))
            if max(z) > self.level:
                self.since[number] = step.index
                found = True
        return found


@pytest.mark.parametrize("name", ["independent-K4-d3-n200", "ar-0.9", "weekdays", "far-rows"])
def test_the_rule_judges_as_the_plain_loops_do(name: str) -> None:
    stream = STREAMS[name]
    model = FSKM(stream.n_clusters, random_state=0, **DEFAULTS)
    rule = IndependentRule(stream.n_clusters)
    plain = PlainRule(rule)
    fast, slow = [], []
    for index, points in enumerate(islice(stream.batches(0), 60)):
        step = model.step(Batch(index, points))
        fast.append(rule.alarms(points, step, model))
        slow.append(plain.alarms(step, model))
    assert fast == slow
    assert sum(fast) > 5 or name not in ("ar-0.9", "weekdays")


def test_a_jump_is_told_once_and_a_waiting_stream_is_quiet() -> None:
    base = BASES["K4-d3-n200"]
    model = FSKM(4, random_state=0, **DEFAULTS)
    rule = IndependentRule(4)
    few = np.zeros((2, 3))
    assert not rule.alarms(few, model.step(Batch(0, few)), model)
    batches = islice(base.batches(0, "one cluster moves 4 sd"), base.calm - 5, base.calm + 5)
    found = [
        rule.alarms(points, model.step(Batch(index, points)), model)
        for index, points in enumerate(batches, start=1)
    ]
    assert found == [False] * 5 + [True] + [False] * 4


@pytest.mark.parametrize(("name", "least"), [("weekdays", 4), ("ar-0.9", 1), ("sizes-ar-0.5", 0)])
def test_columns_are_compared_as_scipy_does(name: str, least: int) -> None:
    stream = STREAMS[name]
    model = FSKM(stream.n_clusters, random_state=0, **DEFAULTS)
    rival = KolmogorovSmirnov()
    # Some values are equal.
    batches = [rows.astype(np.float64).round(1) for rows in islice(stream.batches(0), 40)]
    found, expected = [], []
    for index, points in enumerate(batches):
        found.append(rival.alarms(points, model.step(Batch(index, points)), model))
        before = batches[max(index - 10, 0) : index]
        expected.append(
            any(
                ks_2samp(*columns, method="asymp").pvalue < 0.001 / 3
                for columns in zip(points.T, np.concatenate(before).T, strict=True)
            )
            if before
            else False
        )
    assert found == expected
    assert least <= sum(found) < 37
