"""Profiles of clusters: the plain loops' numbers, words and rows; names that stay; their state."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kmeander import FSKM, Batch, CheckpointError, ForgetfulKMeans, InputError, PrivilegedKMeans
from kmeander.meaning.examples import BATCHES, ROWS
from kmeander.meaning.memory import Memory
from kmeander.meaning.naming import Candidate, named
from kmeander.meaning.words import ENTRIES, LIFT, NAMED, SUPPORT, WordCounts, words_of
from kmeander.models.settings import Settings
from kmeander.preparation import Preparation
from kmeander.records import Captions, Profiles, Step
from kmeander.storage import checkpoint
from tests import naive_meaning as naive

WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen")


def stream(seed: int, n_batches: int, n_points: int = 40) -> list[tuple[Any, Any, list[str]]]:
    """Rows of three clusters, their weights, and texts, in which each has words of its own."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=6.0, size=(3, 2))
    found = []
    for _ in range(n_batches):
        members = rng.integers(3, size=n_points)
        rows = centres[members] + rng.normal(size=(n_points, 2))
        texts = [
            " ".join(rng.choice(WORDS[2 * member : 2 * member + 4], size=3)) for member in members
        ]
        found.append((rows, rng.choice([0.5, 1.0, 3.0], size=n_points), texts))
    return found


@given(seed=st.integers(0, 2**32 - 1), n_batches=st.integers(1, 7))
def test_columns_spread_and_trend_equal_the_plain_loops(seed: int, n_batches: int) -> None:
    model = FSKM(3, rho=0.7, random_state=0)
    for index, (rows, weights, _) in enumerate(stream(seed, n_batches)):
        model.step(Batch(index, rows, weights))
    assert model.centroids is not None
    assert model.cluster_ids is not None
    numbers = model.cluster_ids.tolist()
    window = model.window
    batches = [
        [
            (row, weight, numbers[label])
            for row, weight, label in zip(
                batch.points.tolist(), batch.weights_or_ones.tolist(), labels.tolist(), strict=True
            )
        ]
        for batch, labels in zip(window.batches, window.labels, strict=True)
    ]
    decay = window.decay.tolist()
    for profile in model.describe(["a", "b"]):
        expected = naive.standardised_differences(batches, decay, profile.id)
        named = sorted(
            [
                (-abs(difference), column, inside, outside, difference)
                for column, (inside, outside, difference) in zip("ab", expected, strict=True)
                if abs(difference) >= 0.5
            ]
        )
        assert [one.column for one in profile.columns] == [column for _, column, *_ in named]
        for contrast, (_, _, inside, outside, difference) in zip(
            profile.columns, named, strict=True
        ):
            assert contrast.mean == pytest.approx(inside, rel=1e-9, abs=1e-9)
            assert contrast.rest == pytest.approx(outside, rel=1e-9, abs=1e-9)
            assert contrast.difference == pytest.approx(difference, rel=1e-9)
        centroid = model.centroids[numbers.index(profile.id)].tolist()
        assert profile.spread == pytest.approx(
            naive.spread(batches, decay, profile.id, centroid), rel=1e-9
        )
        if n_batches > 1:
            assert profile.trend == pytest.approx(naive.trend(batches, profile.id), abs=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_words_equal_the_plain_loops(seed: int) -> None:
    rho = 0.7
    model = FSKM(3, rho=rho, random_state=0)
    seen: list[tuple[list[str], float, int]] = []
    for index, (rows, weights, texts) in enumerate(stream(seed, 5)):
        captions = Captions.checked(len(rows), None, texts)
        step = model.step(Batch(index, rows, weights, captions=captions))
        assert step.ids is not None
        assert model.labels is not None
        numbers = step.ids[model.labels].tolist()
        seen = [(words, rho * weight, cluster) for words, weight, cluster in seen]
        seen += [
            (list(dict.fromkeys(text.split())), weight, number)
            for text, weight, number in zip(texts, weights.tolist(), numbers, strict=True)
        ]
        gone = {number for _, _, number in seen} - set(step.ids.tolist())
        if gone or step.history_kept < 1:
            return
    expected = naive.telling_words(seen, NAMED, LIFT, SUPPORT)
    found = {profile.id: list(profile.words) for profile in model.describe()}
    assert found == {number: expected.get(number, []) for number in found}


@given(seed=st.integers(0, 2**32 - 1), n_batches=st.integers(1, 9))
def test_example_rows_equal_the_plain_loops(seed: int, n_batches: int) -> None:
    model = FSKM(3, rho=0.5, max_batches=4, random_state=0)
    kept: dict[int, naive.KeptRows] = {}
    for index, (rows, _, texts) in enumerate(stream(seed, n_batches)):
        keys = [f"{index}-{row % 30}" for row in range(len(rows))]
        step = model.step(Batch(index, rows, captions=Captions.checked(len(rows), keys, texts)))
        assert step.ids is not None
        assert step.centroids is not None
        assert model.labels is not None
        places: dict[int, list[tuple[float, Any]]] = {}
        for row, label in enumerate(model.labels.tolist()):
            distance = float(np.linalg.norm(rows[row] - step.centroids[label]))
            places.setdefault(int(step.ids[label]), []).append((distance, (keys[row], texts[row])))
        kept = {number: one for number, one in kept.items() if number in step.ids.tolist()}
        for number, near in places.items():
            known = kept.setdefault(number, naive.KeptRows(ROWS, BATCHES))
            known.learn(index, near, step.n_batches)
    for profile in model.describe():
        batches = kept[profile.id].batches if profile.id in kept else []
        recent = [(row.batch, (row.id, row.text)) for row in profile.recent]
        old = [(row.batch, (row.id, row.text)) for row in profile.old]
        assert recent == [(index, said) for index, all_said in batches[-1:] for said in all_said]
        first = batches[:1] if len(batches) > 1 else []
        assert old == [(index, said) for index, all_said in first for said in all_said]


def prepared_model(n_batches: int = 3) -> ForgetfulKMeans:
    import pandas as pd

    model = ForgetfulKMeans(2, prepare="auto", random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(n_batches):
        hot = np.arange(60) % 3 == 0
        frame = pd.DataFrame(
            {
                "temp": np.where(hot, 82.0, 31.0) + rng.normal(scale=0.1, size=60),
                "colour": np.where(hot, "red", "blue"),
                "night": hot,
                "vector": list(rng.normal(size=(60, 2))),
            }
        )
        model.partial_fit(frame, rows=[f"row {row}" for row in range(60)])
    return model


def test_a_profile_speaks_in_the_units_of_the_stream() -> None:
    hot = next(profile for profile in prepared_model().describe() if profile.share < 0.5)
    said = {contrast.column: contrast.words() for contrast in hot.columns}
    assert said == {
        "temp": "temp high (82 against 31)",
        "colour=red": "colour=red (100% against 0%)",
        "night": "night (100% against 0%)",
    }
    assert hot.age == 3
    assert len(hot.recent) == 3
    assert hot.rows()[0].startswith("row ")


def test_what_is_printed_is_a_table() -> None:
    model = prepared_model().name(0, "day <1>").name(1, "night shift")
    profiles = model.describe()
    text, html = repr(profiles), profiles._repr_html_()
    assert text.splitlines()[0].split() == [
        *("id", "name", "share", "trend", "age", "set", "apart", "by", "a", "row")
    ]
    assert "night shift" in text
    assert "3 batches" in text
    assert "<td style='text-align:left'>day &lt;1&gt;</td>" in html
    frame = profiles.to_frame()
    assert frame.index.name == "cluster"
    assert frame["share"].sum() == pytest.approx(1.0)
    assert frame.loc[1, "name"] == "night shift"
    assert list(frame["age"]) == [3, 3]


def test_many_clusters_are_summed_up() -> None:
    rows = np.arange(40.0)[:, np.newaxis]
    profiles = ForgetfulKMeans(40, random_state=0).partial_fit(rows).describe()
    assert repr(profiles).splitlines()[-1] == " and 10 more"
    assert "<p>and 10 more</p>" in profiles._repr_html_()
    assert len(profiles[:3]) == 3


def test_a_name_stays_with_its_id_and_events_say_it() -> None:
    model = ForgetfulKMeans(2, random_state=0).partial_fit([[0.0], [1.0], [10.0], [11.0]])
    model.name(0, "night shift")
    rng = np.random.default_rng(0)
    said: list[str] = []
    for index in range(30):
        low = rng.normal(0.5, 0.1, (50, 1))
        high = rng.normal(10.5 if index < 25 else 11.0, 0.1, (50, 1))
        model.partial_fit(np.concatenate([low, high]))
        said += model.step_.words()
    assert [line for line in said if line.startswith("cluster 0 (night shift) moved by")]
    assert model.describe().of(0).name == "night shift"
    assert model.describe().of(0).is_given


def test_a_name_that_was_made_stays_while_it_is_true() -> None:
    hot = Candidate(("temp high", "load low"), frozenset(["temp high", "load low"]), 2, 1.0)
    memory = named({7: hot}, Memory())
    assert memory.names == {7: "temp high, load low"}
    weaker = Candidate(("wind high",), frozenset(["wind high", "temp high", "load low"]), 2, 1.0)
    assert named({7: weaker}, memory).names == {7: "temp high, load low"}
    other = Candidate(("wind high",), frozenset(["wind high", "temp high"]), 2, 1.0)
    assert named({7: other}, memory).names == {7: "wind high"}
    nothing = Candidate((), frozenset(), 2, 1.0)
    assert named({7: nothing}, memory).names == {}


def test_a_model_that_was_saved_describes_the_same(tmp_path: Any) -> None:
    model = FSKM.of(Settings(3, rho=0.7), 0)
    others = FSKM.of(Settings(3, rho=0.7), 0)
    for index, (rows, weights, texts) in enumerate(stream(1, 8)):
        captions = Captions.checked(len(rows), [str(row) for row in range(len(rows))], texts)
        times = (f"2026-06-0{index + 1}T00:00:00Z", f"2026-06-0{index + 1}T01:00:00Z")
        batch = Batch(index, rows, weights, times=times, captions=captions)
        model.step(batch)
        others.step(batch)
        if index == 3:
            model.describe()
            others.describe()
            others.name(0, "night shift")
            model.name(0, "night shift")
        path = tmp_path / "model.ckpt"
        checkpoint.write(path, others.state())
        others = FSKM.from_state(checkpoint.read(path))
    assert list(others.describe()) == list(model.describe())
    assert others.state()["memory"] == model.state()["memory"]
    assert others.describe().of(0).since == "2026-06-01T00:00:00Z"


def test_a_state_of_before_there_were_profiles_has_no_ages() -> None:
    model = FSKM(2, random_state=0)
    model.step(Batch(0, [[0.0], [1.0], [9.0]]))
    state = model.state()
    del state["memory"]
    older = FSKM.from_state(state)
    assert [profile.age for profile in older.describe()] == [None, None]
    assert "batch" not in repr(older.describe())


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"births": {"x": [0, None]}, "named": {}, "given": {}}, "which is no id"),
        ({"births": {"0": [-1, None]}, "named": {}, "given": {}}, "does not hold a batch"),
        ({"births": {}, "named": {"0": [1]}, "given": {}}, "does not hold parts of a name"),
        ({"births": {}, "named": {}, "given": {"0": 1}}, "does not hold names"),
        (
            {"births": {}, "named": {}, "given": {}, "words": {"0": [["a"], []]}},
            "does not hold words and their counts",
        ),
        (
            {"births": {}, "named": {}, "given": {}, "examples": {"0": [[{"batch": "a"}]]}},
            "does not hold rows",
        ),
    ],
)
def test_a_damaged_memory_is_refused(memory: dict[str, Any], said: str) -> None:
    model = FSKM(2, random_state=0)
    model.step(Batch(0, [[0.0], [1.0], [9.0]]))
    with pytest.raises(CheckpointError, match=said):
        FSKM.from_state({**model.state(), "memory": memory})


def test_what_is_remembered_of_words_does_not_grow() -> None:
    counts, rng = WordCounts(), np.random.default_rng(0)
    for index in range(40):
        texts = {
            cluster: [(f"w{index}a{word} w{int(rng.integers(50))}", 1.0) for word in range(40)]
            for cluster in range(200)
        }
        counts = counts.after(0.9, texts)
    assert sum(map(len, counts.by_cluster.values())) <= ENTRIES
    assert WordCounts.from_dict(json.loads(json.dumps(counts.to_dict()))) == counts


def test_clusters_that_end_are_let_go_of() -> None:
    model = FSKM(2, rho=0.3, max_batches=2, random_state=0)
    rng = np.random.default_rng(0)
    for index in range(60):
        rows = rng.normal(size=(40, 1)) + 30.0 * (index // 15) * (np.arange(40) % 2)[:, np.newaxis]
        captions = Captions.checked(40, range(40), ["some words"] * 40)
        model.step(Batch(index, rows, captions=captions))
    memory, lineage = model.learned.memory, model.learned.lineage
    assert lineage is not None
    living = {*lineage.ids.tolist(), *(one.number for one in lineage.asleep)}
    assert memory.examples is not None
    assert memory.words is not None
    assert set(memory.births) == living
    assert set(memory.examples.by_cluster) <= living
    assert set(memory.words.by_cluster) <= living


def test_a_step_carries_profiles_through_json() -> None:
    model = prepared_model()
    step = model.step_.having(profiles=model.describe())
    again = Step.from_dict(json.loads(json.dumps(step.to_dict())))
    assert again == step
    assert isinstance(again.profiles, Profiles)
    assert list(again.profiles) == list(model.describe())
    assert "profiles" not in model.step_.to_dict()


def test_rows_that_a_preparation_leaves_out_have_no_captions() -> None:
    import pandas as pd

    model = ForgetfulKMeans(1, prepare=Preparation(missing="skip"), random_state=0)
    frame = pd.DataFrame({"a": [1.0, np.nan, 1.5]})
    model.partial_fit(frame, rows=pd.Series(["x", "y", "z"], index=[5, 6, 7]))
    assert sorted(row.id or "" for row in model.describe()[0].recent) == ["x", "z"]


def test_a_privileged_model_describes_its_clusters_too() -> None:
    model = PrivilegedKMeans(1, random_state=0).partial_fit([[1.0], [2.0]], texts=["a bug", "bug"])
    assert model.describe()[0].rows() == ["a bug", "bug"]


def test_wrong_captions_and_names_are_refused() -> None:
    model = ForgetfulKMeans(1, random_state=0)
    with pytest.raises(InputError) as refused:
        model.partial_fit([[1.0], [2.0]], rows=["a"])
    assert str(refused.value) == "rows has 1 items, X has 2 rows. Give one for each row."
    with pytest.raises(InputError) as refused:
        model.partial_fit([[1.0], [2.0]], texts="ab")
    assert str(refused.value) == ("texts must be a sequence with one item for each row, got str.")
    model.partial_fit([[1.0], [2.0]])
    with pytest.raises(InputError) as refused:
        model.name(3, "night shift")
    assert str(refused.value) == "there is no cluster 3: the living ones are 0."
    with pytest.raises(InputError) as refused:
        model.name(0, " ")
    assert str(refused.value) == (
        "the name of cluster 0 must be text of 1 to 100 characters, got ' '."
    )
    with pytest.raises(InputError, match="there is no cluster 3: the living ones are 0"):
        model.describe().of(3)
    with pytest.raises(InputError, match="there are no clusters to describe yet"):
        FSKM(2).describe()


def test_words_are_those_that_tell_something() -> None:
    assert words_of("") == []
    assert words_of("the 1234 _x X y") == []
    assert words_of("Übersicht naïve naïve") == ["übersicht", "naïve"]
