"""The parameters of the models: each default once, each check once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, TypedDict

from kmeander.arguments import is_finite, one_of, share_kept, whole_number
from kmeander.exceptions import ArgumentError, argument
from kmeander.kmeans.forgetting import LONGEST_TAIL, Tail, max_batches_for
from kmeander.kmeans.lloyd import Limits
from kmeander.kmeans.local_search import Refinement, refinement_of
from kmeander.kmeans.metric import Metric, metric_of
from kmeander.kmeans.starts import INITIALISATIONS
from kmeander.models.cluster_range import (
    ClusterCount,
    ClusterRange,
    checked_count,
    fixed_count,
)
from kmeander.models.rho_choice import CHOICES, FIRST, Speeds
from kmeander.preparation import Preparation, preparation_of

FORGETTING = ("fixed", "adaptive", "on-trial")

# The words that signatures take, for editors and type checkers.
Init = Literal["previous", "hungarian", "weighted", "current"]
Rho = float | Literal["auto", "two-speed"]
Refine = Literal["swaps", "split-merge"] | int | None
Forgetting = Literal["adaptive", "on-trial", "fixed"]
MetricName = Literal["euclidean", "cosine"]

# What measures best (docs/decisions): the defaults of everything that people meet.
DEFAULTS: dict[str, Any] = {
    "init": "previous",
    "rho": 0.6,
    "refine": "swaps",
    "forgetting": "adaptive",
}
# The paper's algorithm: the defaults of FSKM.
IN_PAPER: dict[str, Any] = {
    "init": "hungarian",
    "rho": 0.5,
    "refine": None,
    "forgetting": "fixed",
}


# Batches of a cycle, each of whose phases is remembered: an hour in a year of them.
LONGEST_SEASON = 10_000
# Alarms that are asked for more often than in every tenth batch are no alarms.
MOST_ALARMS = 0.1


class Options(TypedDict, total=False):
    """The keywords of `Settings`, for signatures that pass them on."""

    init: str
    rho: float | str
    refine: str | int | None
    forgetting: str
    max_batches: int | None
    max_points: int | None
    max_iter: int
    tol: float
    n_threads: int | None
    alarm_rate: float
    season: int | None
    prepare: Preparation | str | None
    metric: str


@dataclass(frozen=True)
class PrivilegedSettings:
    """Parameters of PSKM, and those that FSKM has, too; `ForgetfulKMeans` says what each means."""

    n_clusters: ClusterCount = 8
    max_iter: int = 300
    tol: float = 0.0
    n_threads: int | None = None
    alarm_rate: float = 0.001
    season: int | None = None
    prepare: Preparation | str | None = None
    metric: MetricName = "euclidean"
    limits: Limits = field(init=False, repr=False, compare=False)
    clusters: ClusterRange = field(init=False, repr=False, compare=False)  # of n_clusters
    follows_k: bool = field(init=False, repr=False, compare=False)
    # Nothing is forgotten between two drifts, and nothing searched.
    first_rho: float = field(init=False, repr=False, compare=False, default=1.0)
    tail: Tail | None = field(init=False, repr=False, compare=False, default=None)
    choices: tuple[Speeds, ...] = field(init=False, repr=False, compare=False, default=())
    # Whether an alarm begins a second memory.
    has_trials: bool = field(init=False, repr=False, compare=False, default=False)
    refinement: Refinement = field(
        init=False, repr=False, compare=False, default=Refinement(0, splits=False)
    )

    def __post_init__(self) -> None:
        n_clusters, clusters = self._checked_clusters()
        limits = Limits(self.max_iter, self.tol, self.n_threads, metric_of(self.metric))
        vars(self).update(
            n_clusters=n_clusters,
            clusters=clusters,
            follows_k=clusters.is_followed,
            max_iter=limits.max_iter,
            tol=limits.tol,
            n_threads=limits.n_threads,
            alarm_rate=_checked_alarm_rate(self.alarm_rate),
            season=_checked_season(self.season),
            prepare=rules_for(self.prepare, limits.metric),
            limits=limits,
        )

    def _checked_clusters(self) -> tuple[ClusterCount, ClusterRange]:
        return fixed_count(self.n_clusters)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(entry.name for entry in fields(cls) if entry.init)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, from which the same settings can be made."""
        plain = {name: getattr(self, name) for name in self.names()}
        if isinstance(self.prepare, Preparation):
            plain["prepare"] = self.prepare.to_dict()
        if isinstance(self.n_clusters, tuple):
            plain["n_clusters"] = list(self.n_clusters)
        return plain

    @property
    def rules(self) -> Preparation | None:
        """What is done with rows before they are learned; None where they are points."""
        return rules_for(self.prepare, self.limits.metric)


@dataclass(frozen=True)
class Settings(PrivilegedSettings):
    """Parameters of FSKM, with the defaults that people meet; `ForgetfulKMeans` explains them.

    Examples
    --------
    >>> Settings(3).rho, Settings(3, **IN_PAPER).rho
    (0.6, 0.5)
    """

    init: Init = DEFAULTS["init"]
    rho: Rho = DEFAULTS["rho"]
    refine: Refine = DEFAULTS["refine"]
    forgetting: Forgetting = DEFAULTS["forgetting"]
    max_batches: int | None = None
    max_points: int | None = None
    oldest_age: float = field(init=False, repr=False, compare=False)  # at which a batch leaves

    def __post_init__(self) -> None:
        one_of("init", self.init, INITIALISATIONS)
        one_of("forgetting", self.forgetting, FORGETTING)
        if isinstance(self.rho, str) and self.rho not in CHOICES:
            raise ArgumentError(
                f'{argument("rho")} must be a number in (0, 1], "auto" or "two-speed", got '
                f"{self.rho!r}."
            )
        word = self.rho if isinstance(self.rho, str) else None
        first = Speeds(share_kept(self.rho)) if word is None else FIRST[word]
        rho = first.rho
        max_batches = self._checked_max_batches(rho)
        super().__post_init__()
        vars(self).update(
            rho=rho if word is None else word,
            max_batches=max_batches,
            refinement=refinement_of(self.refine),
            first_rho=rho,
            tail=first.tail,
            choices=() if word is None else CHOICES[word],
            has_trials=self.forgetting == "on-trial",
            oldest_age=_oldest_age(rho) if first.tail is None else LONGEST_TAIL,
            max_points=self._checked_max_points(),
        )

    def _checked_clusters(self) -> tuple[ClusterCount, ClusterRange]:
        return checked_count(self.n_clusters)

    @classmethod
    def in_paper(cls, n_clusters: ClusterCount, options: Options) -> Self:
        """Return the settings of the paper's algorithm, but for the options given."""
        unknown = sorted(options.keys() - Options.__annotations__.keys())
        if unknown:
            raise TypeError(
                f"FSKM got an unexpected keyword argument {unknown[0]!r}; it takes "
                f"{', '.join(Options.__annotations__)} and random_state."
            )
        return cls(n_clusters, **{**IN_PAPER, **options})

    def _checked_max_batches(self, rho: float) -> int | None:
        if self.max_batches is not None:
            return whole_number(
                "max_batches", self.max_batches, at_least=1, meaning="the most batches remembered"
            )
        if rho == 1.0:
            raise ArgumentError(
                "max_batches must be given with rho=1, which never forgets: without it the window "
                "would grow without end."
            )
        return None

    def _checked_max_points(self) -> int | None:
        if self.max_points is None:
            return None
        return whole_number(
            "max_points",
            self.max_points,
            at_least=2 * self.clusters.high,
            meaning=(
                "the most points remembered, two or more for each cluster; leave it out to keep "
                "every point"
            ),
        )


def rules_for(prepare: Any, metric: Metric) -> Preparation | None:
    """Return the rules that `prepare` means.

    Examples
    --------
    >>> from kmeander.kmeans.metric import COSINE, EUCLIDEAN
    >>> rules_for("auto", EUCLIDEAN).scale, rules_for("auto", COSINE).scale
    ('robust', 'none')
    """
    if metric.on_sphere and isinstance(prepare, str) and prepare == "auto":
        return Preparation(scale="none")  # another origin or unit would change every angle
    return preparation_of(prepare)


def _oldest_age(rho: float) -> float:
    return max_batches_for(rho) if rho < 1 else math.inf


def _checked_alarm_rate(value: Any) -> float:
    if is_finite(value) and 0 < value <= MOST_ALARMS:
        return float(value)
    raise ArgumentError(
        f"{argument('alarm_rate')} must lie in (0, {MOST_ALARMS:g}], got {value!r}. It is the "
        "share of the batches of an unchanging stream that may raise an alarm; 0.001 is one in a "
        "thousand batches."
    )


def _checked_season(value: Any) -> int | None:
    if value is None:
        return None
    return whole_number(
        "season",
        value,
        at_least=2,
        at_most=LONGEST_SEASON,
        meaning="the batches after which the stream is expected to repeat itself; leave it out "
        "where it does not",
    )
