"""Other streams than the paper's: what they are, who learns them, and the numbers made of it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from kmeander import FSKM, PSKM, Batch, InputError, kmeans_error, simulate_drifts
from kmeander.experiments.beyond import contestants
from kmeander.experiments.beyond.contestants import DEFAULT, MINI_BATCH, RIVER
from kmeander.experiments.beyond.other_streams import goals, natural, page, returning, synthetic
from kmeander.experiments.beyond.other_streams import tables as other_tables
from kmeander.experiments.beyond.other_streams.cells import StreamRecord, settings_of
from kmeander.experiments.beyond.other_streams.learners import contestant, of_variant
from kmeander.experiments.beyond.other_streams.natural import NaturalCell, NaturalStream
from kmeander.experiments.beyond.other_streams.plan import DEVELOPING, REPORTING, Plan
from kmeander.experiments.beyond.other_streams.returning import ReturningCell
from kmeander.experiments.beyond.other_streams.spark_rule import SparkRule
from kmeander.experiments.beyond.other_streams.synthetic import KINDS, SyntheticCell
from kmeander.experiments.beyond.other_streams.variants import (
    ABLATIONS,
    BEST_OF_TEN,
    EARLIER,
    NAMED,
    OF_DEFAULT,
    Variant,
    switched,
)
from kmeander.kmeans import local_search
from kmeander.kmeans.seeding import kmeans_plusplus
from kmeander.models.settings import DEFAULTS
from tests import naive
from tests.strategies import COARSE, tables

JUMP = "N500-K25-d20-2K-jump"
Row = dict[str, Any]


def rows_of(records: list[StreamRecord]) -> list[Row]:
    return [vars(record) for record in records]


def synthetic_cell(method: str, stream: str = JUMP) -> SyntheticCell:
    kind = KINDS[stream]
    return SyntheticCell(stream, method, 0, *settings_of(method), kind.n_clusters, 0.0)


# Who learns.


@given(st.lists(tables(st.integers(1, 8), 2, COARSE), min_size=1, max_size=4), st.floats(0.3, 1))
def test_sparks_rule_is_the_one_of_the_plain_loops(batches: list[Any], decay: float) -> None:
    model = SparkRule(1, decay, seed=0)
    for points in batches:
        model.learn(points)
    expected, weights = naive.spark_rule(batches, batches[0][:1], decay)
    assert model.centroids == pytest.approx(np.array(expected))
    assert model.weights == pytest.approx(weights)


def test_sparks_rule_begins_at_rows_that_k_means_plusplus_draws() -> None:
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(40, 2)) + 4 * (rng.random((40, 1)) > 0.5) for _ in range(3)]
    model = SparkRule(3, 0.9, seed=5)
    for points in batches:
        model.learn(points)
    begun = kmeans_plusplus(batches[0], 3, random_state=5)
    expected, weights = naive.spark_rule(batches, begun, 0.9)
    assert model.centroids == pytest.approx(np.array(expected))
    assert model.weights.tolist() == pytest.approx(weights)


def test_spark_divides_the_heaviest_where_a_centroid_has_lost_its_weight() -> None:
    model = SparkRule(2, 0.01, seed=0)
    model.learn(np.array([[0.0], [1000.0]]))
    rows = np.array([[0.0], [2.0]])
    for _ in range(3):
        model.learn(rows)
    assert sorted(model.weights.tolist()) == pytest.approx([1e-6, 2.02], rel=1e-2)
    model.learn(rows)
    assert model.weights[0] == model.weights[1] == pytest.approx(1 / 0.99, rel=1e-2)
    # The old weights pull to where both were before: to 0, a little.
    assert model.centroids == pytest.approx(np.array([[1.0], [1.0]]), rel=1e-2)
    assert len(set(model.centroids.ravel().tolist())) == 2
    model.learn(rows)
    assert sorted(model.centroids.ravel().tolist()) == pytest.approx([0.01, 1.99], rel=1e-2)


def test_named_settings_do_not_follow_the_default() -> None:
    for name, settings in {
        "PC": ("previous", 0.5, None, "fixed"),
        "HI": ("hungarian", 0.5, None, "fixed"),
        EARLIER: ("previous", 0.6, "swaps", "adaptive"),
        "auto": ("previous", "auto", "swaps", "adaptive"),
        "hungarian + swaps": ("hungarian", 0.6, "swaps", "adaptive"),
        "fixed 0.95": ("previous", 0.95, "swaps", "fixed"),
    }.items():
        given_settings = dict(NAMED[name].settings)
        assert given_settings == dict(
            zip(("init", "rho", "refine", "forgetting"), settings, strict=True)
        )
    assert len(NAMED) == 9
    assert settings_of("HI")[1] == "" != settings_of(DEFAULT)[1]


def test_variants_differ_from_the_default_in_settings_or_constants() -> None:
    for variant in ABLATIONS.values():
        assert variant.switches or dict(variant.settings) != DEFAULTS
        with switched(variant.switches):
            FSKM(2, **variant.settings)


def test_a_constant_is_exchanged_while_a_variant_learns_and_no_longer() -> None:
    place = "kmeander.kmeans.local_search.CANDIDATES"
    before = local_search.CANDIDATES
    with pytest.raises(TypeError), switched({place: 3}):
        local_search.refinement_of(local_search.CANDIDATES, local_search.CANDIDATES)  # type: ignore[call-arg]
    assert before == local_search.CANDIDATES
    batches = list(islice(KINDS[JUMP].arrivals(0), 12))
    few = of_variant(Variant.of_default("few", refine="swaps", switches={place: 3}), 25, 0)
    known = of_variant(Variant.of_default("known", refine=3), 25, 0)
    usual = of_variant(Variant.of_default("usual", refine="swaps"), 25, 0)
    errors = [
        [model.learn(arrival.batch).prequential_error for arrival in batches][1:]
        for model in (few, known, usual)
    ]
    assert errors[0] == errors[1] != errors[2]
    with (
        pytest.raises(InputError) as raised,
        switched({place: 3, "kmeander.kmeans.local_search.NONE": 1}),
    ):
        pass
    assert str(raised.value) == (
        "kmeander.kmeans.local_search has no NONE, which a variant of the default exchanges. "
        "Correct the name in ABLATIONS."
    )
    assert before == local_search.CANDIDATES


def test_contestants_are_the_models_that_a_user_would_make() -> None:
    batches = [arrival.batch for arrival in islice(KINDS[JUMP].arrivals(1), 3)]
    for name, model in {
        DEFAULT: FSKM(25, **DEFAULTS, random_state=7),
        "HI": FSKM(25, random_state=7),
        "auto": FSKM(
            25, init="previous", rho="auto", refine="swaps", forgetting="adaptive", random_state=7
        ),
        "PSKM": PSKM(25, random_state=7),
    }.items():
        learner = contestant(name, 25, 7)
        for batch in batches:
            learned, step = learner.learn(batch), model.step(batch)
            assert step.centroids is not None
            assert learned.centroids.tolist() == step.centroids.tolist()
            assert learned.n_distances == step.n_distances
            assert learned.rows_kept == model.window.n_points
    with pytest.raises(KeyError):
        contestant("nobody", 25, 7)


# Synthetic streams.


@pytest.mark.parametrize("name", list(KINDS))
def test_synthetic_streams_drift_as_they_say(name: str) -> None:
    kind = KINDS[name]
    arrivals = list(islice(kind.arrivals(3), 11))
    again = list(islice(kind.arrivals(3), 11))
    assert all(
        one.batch.points.tobytes() == other.batch.points.tobytes()
        for one, other in zip(arrivals, again, strict=True)
    )
    assert [(a.visit, a.since_drift) for a in arrivals] == [(0, t) for t in range(1, 11)] + [(1, 1)]
    assert arrivals[0].batch.points.shape == (kind.batch_size, kind.n_features)
    # Modes of variance 9 and noise of variance 1.
    first = np.concatenate([arrival.batch.points for arrival in arrivals[:10]])
    assert first.var() == pytest.approx(10, rel=0.25)
    best = KMeans(kind.n_modes, n_init=1, random_state=0).fit(first[: 20 * kind.n_modes])
    after = kmeans_error(arrivals[10].batch.points, best.cluster_centers_) / kind.n_features
    if kind.drift == "move":  # by a variance of 1 in every column
        assert after < 2.8
    else:
        assert after > 3


def test_the_error_over_restarts_follows_from_batches_and_models() -> None:
    records = {m: synthetic_cell(m).run(np.empty((0, 20))) for m in (DEFAULT, BEST_OF_TEN)}
    rows = [row for found in records.values() for row in rows_of(found)]
    best = {record.batch: record for record in records[BEST_OF_TEN]}
    assert [(r.visit, r.since_drift) for r in best.values()] == [
        (visit, t) for visit in (1, 2) for t in (1, 2, 4, 10)
    ]
    model = FSKM(25, **DEFAULTS, random_state=0)
    arrivals = list(KINDS[JUMP].arrivals(0))
    ratios: dict[int, list[float]] = {}
    for arrival, record in zip(arrivals, records[DEFAULT], strict=True):
        step = model.step(arrival.batch)
        index = arrival.batch.index
        since = [a.batch.points for a in arrivals[10 * arrival.visit : index + 1]]
        assert record.n_distances == step.n_distances
        if index not in best:
            assert math.isnan(record.skm_error)
            continue
        assert step.centroids is not None
        expected = kmeans_error(np.concatenate(since), step.centroids)
        assert record.skm_error == pytest.approx(expected)
        ratios.setdefault(arrival.since_drift, []).append(expected / best[index].skm_error)
    alone = KMeans(25, n_init=3, random_state=0).fit(arrivals[10].batch.points)
    assert best[10].skm_error <= alone.inertia_ / 500 * 1.01
    found = {(row["method"], row["since_drift"]): row for row in other_tables.synthetic_rows(rows)}
    assert len(found) == 2 * 4
    for t, values in ratios.items():
        assert found[DEFAULT, t]["over_restarts"] == pytest.approx(np.mean(values))
        assert found[DEFAULT, t]["n"] == 2
        assert found[BEST_OF_TEN, t]["over_restarts"] == 1


# Natural streams.


def write(path: Path, **columns: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_natural_streams_are_scaled_by_their_first_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(7, 3, size=2600), rng.normal(size=2600)
    a[2000:] += 30
    write(tmp_path / "natural" / "walk.parquet", a=a, b=b, c=np.full(2600, 4.0), label=b)
    vectors = rng.normal(size=(20, 6)).astype(np.float16)
    write(
        tmp_path / "commit_subjects.parquet",
        time=np.arange(20),
        vector=pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 6),
    )
    write(tmp_path / "stranger.parquet", a=a)
    streams = natural.load_streams(tmp_path)
    assert list(streams) == ["walk", "commit_subjects"]
    walk = streams["walk"]
    assert (walk.batch_size, walk.n_clusters, walk.n_batches) == (500, 10, 5)
    assert walk.points[:, 0] == pytest.approx((a - a[:2000].mean()) / a[:2000].std())
    assert set(walk.points[:, 2]) == {0.0}
    assert [arrival.batch.index for arrival in walk.arrivals()] == list(range(5))
    assert len(list(walk.arrivals(n_rows=1700))) == 3
    embeddings = streams["commit_subjects"]
    assert embeddings.points.dtype == np.float32
    assert embeddings.points.tolist() == vectors.astype(np.float32).tolist()
    assert (embeddings.batch_size, embeddings.n_clusters) == (2000, 100)


def test_what_is_no_stream_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "natural" / "short.parquet", a=np.arange(2499.0))
    with pytest.raises(InputError) as raised:
        natural.load_streams(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path / 'natural' / 'short.parquet'} has 2499 rows; a stream needs 2500, of which "
        "the last 500 are scored. Leave it out of the folder."
    )
    (tmp_path / "natural" / "short.parquet").unlink()
    write(tmp_path / "commit_subjects.parquet", a=np.arange(3))
    with pytest.raises(InputError, match=r"commit_subjects.parquet has no column vector, which "):
        natural.load_streams(tmp_path)


def wandering(n_rows: int = 2200) -> Any:
    rng = np.random.default_rng(8)
    lumps = rng.normal(scale=5.0, size=(12, 3))[rng.integers(12, size=n_rows)]
    drift = np.linspace(0, 6, n_rows)[:, np.newaxis] * [1.0, 0.0, -2.0]
    return lumps + drift + rng.normal(size=(n_rows, 3))


def natural_records(*methods: str) -> list[Row]:
    points = wandering()
    return [
        row
        for method in methods
        for seed in (0, 1)
        for row in rows_of(
            NaturalCell("walk", method, seed, *settings_of(method), 5, 0.0, 100).run(points)
        )
    ]


def test_the_next_batch_is_forecast_by_what_was_learned_before() -> None:
    records = natural_records(DEFAULT, "HI", "PC", MINI_BATCH)
    rows = {row["method"]: row for row in other_tables.natural_rows(records)}
    points, errors = wandering(), {}
    for name, settings in {"HI": {}, "PC": {"init": "previous"}, DEFAULT: DEFAULTS}.items():
        scored = []
        for seed in (0, 1):
            model = FSKM(5, **settings, random_state=seed)
            for index in range(22):
                step = model.step(Batch(index, points[100 * index : 100 * (index + 1)]))
                scored += [step.prequential_error] if index >= 4 else []
        errors[name] = np.array(scored, dtype=float).reshape(2, 18).mean(axis=0)
        assert rows[name]["error"] == pytest.approx(errors[name].mean())
        assert rows[name]["largest_batch"] == pytest.approx(errors[name].max() / errors[name].sum())
    default, rivals = errors[DEFAULT], (errors["HI"], errors["PC"])
    parts = {"over_best": slice(18), "first_half": slice(9), "second_half": slice(9, 18)}
    for name, part in parts.items():
        best = min(rival[part].mean() for rival in rivals)
        assert rows[DEFAULT][name] == pytest.approx(default[part].mean() / best)
    assert min(rows[name]["over_best"] for name in ("HI", "PC")) == 1
    assert rows[MINI_BATCH]["over_it"] == pytest.approx(default.mean() / rows[MINI_BATCH]["error"])
    assert rows[DEFAULT]["over_it"] == 1


def test_river_is_compared_on_the_rows_that_it_has_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("river")
    monkeypatch.setattr(natural, "ROWS_OF_RIVER", 1000)
    records = natural_records(DEFAULT, "HI", RIVER)
    rows = {row["method"]: row for row in other_tables.natural_rows(records)}
    assert (rows[RIVER]["batches"], rows["HI"]["batches"]) == (6, 18)
    assert math.isnan(rows[RIVER]["over_best"])
    chosen = [
        row["prequential_error"]
        for row in records
        if row["method"] == DEFAULT and 4 <= row["batch"] < 10
    ]
    assert rows[RIVER]["over_it"] == pytest.approx(np.mean(chosen) / rows[RIVER]["error"])


# Concepts that return.


def test_concepts_return_in_turns_and_excess_is_that_over_their_best() -> None:
    pool = wandering(800)
    cells = {
        method: ReturningCell(
            "walk-epsilon2", method, 3, *settings_of(method), 4, 2.0, "walk", 100, 5
        )
        for method in (DEFAULT, "HI", BEST_OF_TEN)
    }
    # As pools are: in no particular order in memory.
    records = {method: cell.run(np.asfortranarray(pool)) for method, cell in cells.items()}
    batches = list(cells["HI"].arrivals([pool, pool + 1]))
    assert [a.visit for a in batches] == [visit for visit in range(6) for _ in range(5)]
    assert [a.since_drift for a in batches] == [1, 2, 3, 4, 5] * 6
    known = {tuple(row) for row in pool}
    assert [tuple(a.batch.points[0]) in known for a in batches] == [
        visit % 2 == 0 for visit in range(6) for _ in range(5)
    ]
    best = [record.prequential_error for record in records[BEST_OF_TEN]]
    # Each concept's best centroids are about as good at each of its visits.
    assert np.std(best[:5]) < 0.3 * np.mean(best)
    found = other_tables.returning_rows([row for rows in records.values() for row in rows_of(rows)])
    for row in found:
        visits = (1,) if row["visit"] == "first" else (2, 3, 4, 5)
        places = [5 * visit + row["since_drift"] - 1 for visit in visits]
        excess = [
            records[row["method"]][place].prequential_error / best[place] - 1 for place in places
        ]
        assert row["n"] == len(visits)
        assert row["median"] == pytest.approx(np.median(excess))
        assert row["mean"] == pytest.approx(np.mean(excess))
    assert {row["method"] for row in found} == {DEFAULT, "HI"}


def test_the_second_concept_is_a_drift_of_the_first() -> None:
    pool = wandering(800)
    cell = ReturningCell("walk-epsilon2", "HI", 3, *settings_of("HI"), 4, 2.0, "walk", 100, 5)
    concepts = cell.concepts(pool)
    assert concepts[0].tolist() == pool.tolist()
    again = simulate_drifts(pool, 4, 2.0, 2, random_state=0)
    assert concepts[1].shape == again[1].shape
    assert concepts[1].tolist() != pool.tolist()


# Numbers and goals.


def test_work_is_counted_beside_his_and_rows_beside_batches() -> None:
    rows = [
        {"stream": "s", "method": m, "n_distances": n, "n_points": 10, "n_clusters": 2,
         "rows_kept": kept}
        for m, n, kept in (("HI", 40, 25), ("HI", 60, 35), (DEFAULT, 30, 5), (DEFAULT, 20, 70))
    ]  # fmt: skip
    found = {row["method"]: row for row in other_tables.work_rows("natural", rows)}
    assert found[DEFAULT] == {
        "panel": "natural", "stream": "s", "method": DEFAULT, "passes": 50 / 40, "over_HI": 0.5,
        "batches_kept": 7.0,
    }  # fmt: skip


def numbers(**changed: Any) -> other_tables.Numbers:
    """Made-up numbers, all of which are just good enough."""
    value = {
        "T1": 1.01, "T10": 1.01, "other": 0.991, "natural": 1.01, "worst": 1.01, "unseen": 1.02,
        "share": 0.1, "peer": 0.9, "peers": 0.9, "return": 0.02, "first": 0.045, "board": 1.01,
        "distances": 0.7, "K": 1.2, "2K": 1.2, "kept": 15.0, **changed,
    }  # fmt: skip
    kinds = {1: "N500-K25-d20-K-move", 2: JUMP}

    def ahead(stream: str, over: float, peer: float) -> list[Row]:
        common = {"stream": stream, "largest_batch": value["share"]}
        return [
            {**common, "method": "HI", "over_best": 1.0, "over_it": over},
            {**common, "method": DEFAULT, "over_best": over, "over_it": 1.0},
            {**common, "method": MINI_BATCH, "over_best": 9.0, "over_it": peer},
            {**common, "method": RIVER, "over_best": math.nan, "over_it": 0.1},
        ]

    return {
        "synthetic": [
            {"stream": kind, "since_drift": t, "method": m, "over_restarts": over}
            for kind in kinds.values()
            for t, ours in ((1, value["T1"]), (10, value["T10"]))
            for m, over in ((DEFAULT, ours), ("HI", 2.0), ("PSKM", value["other"]))
        ],
        "natural": [
            *ahead("insects", value["natural"], value["peers"]),
            *ahead("shuttle", value["worst"], value["peer"]),
            *ahead("alternating_chessboard", value["board"], value["peers"]),
            *ahead("new", value["unseen"], value["peers"]),
        ],
        "returning": [
            {"epsilon": e, "visit": visit, "method": m, "since_drift": t,
             "median": value[visit] if (m, t) == (DEFAULT, 2) else 9.0}
            for e in (0.5, 2.0)
            for visit in ("first", "return")
            for m in (DEFAULT, "HI")
            for t in (1, 2)
        ],
        "work": [
            {"panel": panel, "stream": stream, "method": DEFAULT, "over_HI": over,
             "batches_kept": value["kept"]}
            for panel, stream, over in (
                ("natural", "insects", value["distances"]), ("synthetic", kinds[1], value["K"]),
                ("synthetic", kinds[2], value["2K"]),
            )
        ],
    }  # fmt: skip


def met(**changed: Any) -> list[bool | None]:
    return [goal.met for goal in goals.goals(numbers(**changed))]


def test_each_goal_of_other_streams_fails_alone() -> None:
    assert met() == [True] * 16
    for changed, missed in (
        ({"T10": 1.0101}, {0}),
        ({"other": 0.99}, {1}),
        ({"natural": 1.0101}, {2}),
        ({"unseen": 1.0201}, {3}),
        ({"natural": 0.9, "worst": 1.0501}, {4}),
        ({"peer": 1.0, "peers": 0.8}, {5}),
        ({"peer": 0.901}, {6}),
        ({"return": 0.0201}, {7, 8}),
        ({"first": 0.0451}, {9, 10}),
        ({"natural": 0.8, "board": 1.0501, "share": 0.6}, {11}),
        ({"distances": 0.71}, {12}),
        ({"K": 1.21}, {13}),
        ({"2K": 1.21}, {14}),
    ):
        assert {place for place, is_met in enumerate(met(**changed)) if not is_met} == missed
    assert met(kept=15.1).count(False) == 1
    assert met(natural=0.9, worst=1.06, share=0.51)[4] is True


def test_without_files_only_synthetic_streams_are_judged() -> None:
    alone = {**numbers(), "natural": [], "returning": []}
    alone["work"] = [row for row in alone["work"] if row["panel"] == "synthetic"]
    found = goals.goals(alone)
    assert [goal.met is None for goal in found] == [False] * 2 + [True] * 11 + [False] * 3
    assert {goal.verdict for goal in found} == {"yes", "not measured"}


def test_a_variant_shows_what_its_part_earns() -> None:
    made = numbers()
    made["synthetic"] += [
        {"stream": JUMP, "since_drift": t, "method": "default without swaps", "over_restarts": over}
        for t, over in ((1, 2 * 1.01), (10, 1.01))
    ]
    made["natural"] = [
        {"stream": stream, "method": method, "error": error}
        for stream, method, error in (
            ("insects", DEFAULT, 2.0), ("insects", "default without swaps", 2.2),
            ("shuttle", DEFAULT, 1.0), ("shuttle", "default without swaps", 0.9),
            ("shuttle", "HI", 5.0),
        )
    ]  # fmt: skip
    made["returning"] += [
        {"epsilon": 0.5, "visit": "return", "method": "default without swaps", "since_drift": 2,
         "median": 0.05}
    ]  # fmt: skip
    (row,) = other_tables.variant_rows(made)
    assert row["method"] == "default without swaps"
    assert row["synthetic"] == pytest.approx(math.sqrt(2) - 1)
    assert row["synthetic_T1"] == pytest.approx(1)
    assert row["synthetic_T10"] == pytest.approx(0)
    assert (row["synthetic_most"], row["synthetic_where"]) == (
        pytest.approx(1),
        f"{JUMP}, T = 1",
    )
    assert row["natural"] == pytest.approx(math.sqrt(1.1 * 0.9) - 1)
    assert (row["natural_most"], row["natural_where"]) == (pytest.approx(0.1), "insects")
    assert row["return_0.5"] == pytest.approx(0.03)
    assert math.isnan(row["return_2"]) and math.isnan(row["distances"])
    assert "+10.0% (insects)" in page.variants_table({**made, "variants": [row]})


# The plan.


def test_developing_and_reporting_have_seeds_of_their_own() -> None:
    assert not set(DEVELOPING) & set(REPORTING)
    assert (list(DEVELOPING), list(REPORTING)) == ([0, 1, 2], [100, 101, 102, 103, 104])


def plan(**changed: Any) -> Plan:
    fields = {
        "seeds": range(2),
        "kinds": (JUMP,),
        "streams": {"walk": NaturalStream(wandering(), 100, 5)},
        "pools": {"walk": wandering(800)},
        "variants": ("default without swaps",),
    }
    return Plan(**{**fields, **changed})


def test_cells_of_the_plan_have_names_of_their_own_and_points() -> None:
    cells = plan(river=True).cells()
    names = [cell.name for cell in cells]
    on_natural = 9 + 4 + 2
    assert len(names) == len(set(names)) == 2 * 7 + 2 * on_natural + 1 + 2 * 2 * 5
    data = plan().data()
    assert {cell.dataset for cell in cells} <= set(data)
    # The default's are of this program; what does not follow it is found again by another.
    assert {cell.method for cell in cells if cell.program} == {DEFAULT, "default without swaps"}
    one = replace(cells[0], method=DEFAULT, program="0123456789")
    assert one.name == f"synthetic-{JUMP}-default-s0-01234567"
    assert {variant.name for variant in OF_DEFAULT.values()} == {DEFAULT, *ABLATIONS}
    assert set(contestants.ABLATIONS) <= set(ABLATIONS)
    assert synthetic.SHAPES[-1][-1] <= len(DEVELOPING)
    assert returning.EPSILONS == (0.5, 2.0)
