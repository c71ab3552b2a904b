"""A run as metrics for Prometheus: counts and numbers, no rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from kmeander.events import KINDS
from kmeander.exceptions import InputError
from kmeander.records.event_time import microseconds_of
from kmeander.runs.operations.activity import STATUSES, Deliveries, Snapshot

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector, CollectorRegistry

    from kmeander.records import Step

# Clusters that have series of their own: the heaviest.
MOST_CLUSTERS = 1000


def need_prometheus() -> None:
    """Refuse to go on without prometheus-client, which an extra brings."""
    if find_spec("prometheus_client") is None:
        raise InputError("metrics need prometheus-client: pip install 'kmeander[metrics]'")


def registry_of(look: Callable[[], Snapshot]) -> CollectorRegistry:
    """Return what a scrape collects: a run as it is then, and the memory and files of its process.

    Parameters
    ----------
    look : callable
        Returns the run at this moment; called in the thread of the scrape.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_collector(look))
    return registry


def _collector(look: Callable[[], Snapshot]) -> Collector:
    from prometheus_client.registry import Collector

    class RunCollector(Collector):
        def collect(self) -> Iterator[Metric]:
            snapshot = look()
            yield from _counts(snapshot)
            yield from _status(snapshot)
            yield from _deliveries(snapshot.deliveries)
            if snapshot.last is not None:
                yield from _numbers(snapshot.last)

        def describe(self) -> Iterator[Metric]:  # else it would collect to learn the names
            return iter(())

    return RunCollector()


def _counter(name: str, help_: str, value: float | None) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    if value is not None:
        yield CounterMetricFamily(f"kmeander_{name}", help_, value)


def _gauge(name: str, help_: str, value: float | None) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    if value is not None:
        yield GaugeMetricFamily(f"kmeander_{name}", help_, value)


def _counts(snapshot: Snapshot) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    yield from _counter("rows", "Rows learned.", snapshot.n_points)
    yield from _counter("batches", "Batches learned.", snapshot.n_batches)
    yield from _counter("rejected_rows", "Bad rows set aside.", snapshot.n_bad)
    yield from _counter("late_rows", "Rows that came after their period.", snapshot.n_late)
    yield from _counter(
        "unconfirmed_events", "Events before the noise was known.", snapshot.n_unconfirmed
    )
    events = CounterMetricFamily("kmeander_events", "Confirmed events.", labels=["kind"])
    for kind in KINDS:  # from 0 on, so that the first is a rise
        events.add_metric([kind], snapshot.events.get(kind, 0))
    yield events
    if snapshot.stage_seconds:
        seconds = CounterMetricFamily(
            "kmeander_stage_seconds", "Seconds spent, by stage.", labels=["stage"]
        )
        for stage, spent in snapshot.stage_seconds.items():
            seconds.add_metric([stage], spent)
        yield seconds


def _status(snapshot: Snapshot) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    status = GaugeMetricFamily(
        "kmeander_status", "1 for what the run is doing now, else 0.", labels=["status"]
    )
    for name in STATUSES:
        status.add_metric([name], float(snapshot.status == name))
    yield status
    yield from _gauge("lag_rows", "Rows that wait to be read.", snapshot.lag)
    yield from _gauge(
        "checkpoint_age_seconds", "Seconds since the newest checkpoint.", snapshot.checkpoint_age
    )


def _deliveries(deliveries: Mapping[str, Deliveries]) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    if not deliveries:
        return
    label = ["receiver"]
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {
        "n_delivered": CounterMetricFamily(
            "kmeander_notices_delivered", "Notices that were taken.", labels=label
        ),
        "n_failures": CounterMetricFamily(
            "kmeander_notice_failures", "Times that a notice was not taken.", labels=label
        ),
        "n_lost": CounterMetricFamily(
            "kmeander_notices_lost", "Notices dropped, as too many waited.", labels=label
        ),
        "n_waiting": GaugeMetricFamily(
            "kmeander_notices_waiting", "Notices not delivered yet.", labels=label
        ),
    }
    for receiver, counts in deliveries.items():
        for name, family in families.items():
            family.add_metric([receiver], getattr(counts, name))
    yield from families.values()


def _numbers(step: Step) -> Iterator[Metric]:
    """Yield what the newest Step says."""
    from prometheus_client.core import GaugeMetricFamily

    yield from _gauge("batch_index", "Number of the newest batch, from 0.", step.index)
    if step.last_time is not None:
        at = microseconds_of(step.last_time) / 1e6
        yield from _gauge("event_time_seconds", "When the newest row happened, since 1970.", at)
        yield from _gauge("lag_seconds", "Seconds since the newest row happened.", time.time() - at)
    yield from _gauge("error_before_learning", "Error of the newest batch.", step.prequential_error)
    yield from _gauge("error_after_learning", "Error of the newest batch.", step.batch_error)
    yield from _gauge("window_error", "Error over the whole window.", step.surrogate_error)
    yield from _gauge("expected_error", "What the next error should be.", step.expected_error)
    yield from _gauge("epsilon", "Size of the drift of the newest batch.", step.drift_epsilon)
    if step.masses is None or step.ids is None:
        return
    yield from _gauge("clusters", "Clusters that have rows.", int((step.masses > 0).sum()))
    mass = GaugeMetricFamily("kmeander_cluster_mass", "Decayed weight.", labels=["cluster"])
    share = GaugeMetricFamily("kmeander_cluster_share", "Share of all mass.", labels=["cluster"])
    heaviest = np.sort(np.argsort(-step.masses, kind="stable")[:MOST_CLUSTERS])
    for number, its_mass in zip(
        step.ids[heaviest].tolist(), step.masses[heaviest].tolist(), strict=True
    ):
        mass.add_metric([str(number)], its_mass)
        share.add_metric([str(number)], its_mass / step.mass if step.mass > 0 else 0.0)
    yield mass
    yield share
