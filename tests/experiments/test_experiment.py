"""From stored steps to figures, numbers and findings; the command as a whole."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from kmeander import InputError, theorem1_bound
from kmeander.experiments import (
    claims_distances,
    claims_errors,
    claims_skm,
    figures,
    theorem1,
)
from kmeander.experiments.claims import Claim
from kmeander.experiments.datasets import LoadedDataset
from kmeander.experiments.experiment import narrowest_band, report, run_experiment
from kmeander.experiments.findings import page, sections
from kmeander.experiments.grid import Grid
from kmeander.experiments.protocol import METHODS
from kmeander.experiments.storage import load
from kmeander.experiments.tables import SCORES, Steps, boxes, medians, read_csv
from kmeander.scores import Box
from tests import naive
from tests.experiments.test_protocol import tiny_datasets
from tests.program import kmeander

pytestmark = pytest.mark.slow

GRID = Grid(n_clusters=(2, 3), epsilons=(0.5, 1.0), n_concepts=3)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a small grid, as it lies on the disk."""
    folder = tmp_path_factory.mktemp("run")
    found = [
        LoadedDataset(name, name.title(), points, "made up")
        for name, points in tiny_datasets().items()
    ]
    run_experiment(found, [], GRID, folder, repetitions_of_figure1=20)
    return folder


def cell_files(folder: Path) -> list[Path]:
    return [
        folder / "steps" / f"{cell.name}.parquet"
        for cell in GRID.cells(entry["key"] for entry in facts(folder)["datasets"])
    ]


def facts(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return found


def steps_of(folder: Path) -> Steps:
    return Steps.of(load(cell_files(folder)))


def test_a_run_leaves_figures_numbers_and_findings(stored: Path) -> None:
    names = {path.name for path in (stored / "figures").iterdir()}
    expected = {f"{key}.{kind}" for key in ("theorem1", *SCORES) for kind in ("pdf", "png", "csv")}
    assert names == expected
    assert {path.name for path in stored.iterdir()} == {
        "steps", "figures", "run.json", "medians.csv", "FINDINGS.md",
    }  # fmt: skip
    for path in (stored / "figures").glob("*.png"):
        assert path.read_bytes()[:4] == b"\x89PNG"
    assert facts(stored)["grid"]["n_clusters"] == [2, 3]


def test_every_m_gets_figures_of_its_own(stored: Path) -> None:
    table = load(cell_files(stored))
    other = table.set_column(table.column_names.index("m"), "m", pa.array([1.0] * table.num_rows))
    steps = Steps.of(pa.concat_tables([table, other]))
    assert steps.ms == [1.0, 2.0]
    alone = Steps.of(table)
    for m in steps.ms:
        rows = boxes(steps.only(m), SCORES["distances"])
        assert {row["m"] for row in rows} == {m}
        assert [row["median"] for row in rows] == [
            row["median"] for row in boxes(alone, SCORES["distances"])
        ]


def test_drawing_again_from_the_files_gives_the_same_bytes(stored: Path) -> None:
    def contents() -> dict[str, bytes]:
        paths = [*(stored / "figures").iterdir(), stored / "FINDINGS.md", stored / "medians.csv"]
        return {path.name: path.read_bytes() for path in paths}

    before = contents()
    report(stored, cell_files(stored))
    assert contents() == before


def artists(axes: Any) -> dict[str, Any]:
    return {artist.get_gid(): artist for artist in axes.get_children() if artist.get_gid()}


def panels(figure: Figure) -> dict[str, dict[str, Any]]:
    return {str(axes.get_gid()): artists(axes) for axes in figure.axes}


@pytest.mark.parametrize("key", SCORES)
def test_the_boxes_drawn_are_those_of_the_csv(stored: Path, key: str) -> None:
    rows = read_csv(stored / "figures" / f"{key}.csv")
    figure = figures.draw_scores(rows, SCORES[key])
    found = panels(figure)
    for axes in figure.axes:  # nothing is cut off
        low, high = axes.get_ylim()
        for line in axes.lines:
            if str(line.get_gid()).startswith(("low", "high", "median")):
                ends = np.asarray(line.get_ydata(), dtype=np.float64)
                assert low < ends.min() <= ends.max() < high
    assert set(found) == {f"axes:K={k}:epsilon={e:g}" for k in (2, 3) for e in (0.5, 1.0)}
    assert len(rows) == 4 * 4 * len(SCORES[key].methods)
    for row in rows:
        here = found[f"axes:K={row['n_clusters']}:epsilon={row['epsilon']:g}"]
        name = f"T={row['since_drift']}:{row['method']}"
        assert set(here[f"median:{name}"].get_ydata()) == {row["median"]}
        corners = here[f"box:{name}"].get_path().vertices[:, 1]
        assert {corners.min(), corners.max()} == {row["q1"], row["q3"]}
        assert set(here[f"low:{name}"].get_ydata()) == {row["q1"], row["low"]}
        assert set(here[f"high:{name}"].get_ydata()) == {row["q3"], row["high"]}
        colour = figures.COLOURS[row["method"]]
        assert to_hex(here[f"box:{name}"].get_facecolor()).upper() == colour


@pytest.mark.parametrize("key", SCORES)
def test_the_csv_holds_the_scores_of_the_stored_steps(stored: Path, key: str) -> None:
    score = SCORES[key]
    table = load(cell_files(stored)).to_pylist()
    batches: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table:
        if row["concept"] > 0:
            place = tuple(row[name] for name in ("dataset", "n_clusters", "epsilon", "batch"))
            batches.setdefault(place, {})[row["method"]] = row
    for row in read_csv(stored / "figures" / f"{key}.csv"):
        values = []
        for (_, n_clusters, epsilon, _), methods in batches.items():
            here = methods[row["method"]]
            if (n_clusters, epsilon) == (row["n_clusters"], row["epsilon"]) and (
                here["since_drift"] == row["since_drift"]
            ):
                compared = [methods[name][score.column] for name in score.methods]
                errors = naive.normalised(compared)
                own = errors[score.methods.index(row["method"])]
                values.append(own + ("distances" in key))
        assert row["n"] == len(values) == 2 * 2
        assert row["median"] == pytest.approx(float(np.median(values)))


def test_figure_1_is_drawn_from_its_csv(stored: Path) -> None:
    rows = read_csv(stored / "figures" / "theorem1.csv")
    assert len(rows) == 2 * 3 * 20
    chosen = narrowest_band(rows)
    assert len({row["dataset"] for row in chosen}) == 1
    found = panels(figures.draw_theorem1(chosen))
    assert set(found) == {"axes:a", "axes:b", "axes:c"}
    for panel in "abc":
        here = found[f"axes:{panel}"]
        of_panel = [row for row in chosen if row["panel"] == panel]
        assert here["expected"].get_ydata().tolist() == [row["expected"] for row in of_panel]
        for row in of_panel:
            name = f"median:T={row['since_drift']}"
            assert set(here[name].get_ydata()) == {row["median"]}
        for share in ("95%", "68%"):
            edges = here[f"band:{share}"].get_paths()[0].vertices
            for row in of_panel:
                at = edges[edges[:, 0] == row["since_drift"], 1]
                assert at.max() == pytest.approx(row["expected"] + row[f"band_{share}"])
                assert at.min() == pytest.approx(row["expected"] - row[f"band_{share}"])


def test_figure_1_measures_what_theorem_1_speaks_of() -> None:
    points = tiny_datasets()["lumps"]
    measured = theorem1.measure(points, repetitions=30, seed=0)
    assert [round(gaps.panel.rho, 3) for gaps in measured] == [0.676, 0.676, 0.822]
    assert [gaps.panel.batch_size for gaps in measured] == [1000, 4000, 1000]
    centre = points.mean(axis=0)
    error = ((points - centre) ** 2).sum(axis=1).mean()
    for gaps in measured:
        assert gaps.gaps.shape == (30, 20)
        assert gaps.error == pytest.approx(error)
        # The mean of thirty repetitions lies near what the theorem expects.
        for t in (1, 5, 20):
            assert gaps.gaps[:, t - 1].mean() == pytest.approx(gaps.expected(t), abs=0.02 * error)
            assert gaps.bound(t, 0.05) == theorem1_bound(
                gaps.panel.rho, t, gaps.panel.batch_size, gaps.value_range, 0.05
            )
            assert gaps.share_within(t, 0.05) == 1.0


def test_the_difference_of_the_errors_equals_the_plain_loop() -> None:
    panel = theorem1.Panel("x", 1, 2.0)
    squared = [np.arange(1.0, 50.0), np.arange(50.0, 120.0)]
    rng, same = np.random.default_rng(3), np.random.default_rng(3)
    gaps, _ = theorem1._one_repetition(squared, panel, rng)
    errors = [
        float(value)
        for source, count in zip(squared, (40, 20), strict=True)
        for value in source[same.integers(len(source), size=(count, 1))].mean(axis=1)
    ]
    assert gaps == pytest.approx(naive.surrogate_gaps(errors, 40, panel.rho))


def test_medians_are_those_of_all_batches(stored: Path) -> None:
    steps = steps_of(stored)
    rows = {(row["score"], row["method"]): row for row in read_csv(stored / "medians.csv")}
    assert rows == {(row["score"], row["method"]): row for row in medians(steps)}
    assert len(rows) == 4 + 4 + 5 + 4 + 4
    for t in (1, 2, 4, 10):
        values = steps.scores(SCORES["converged_skm_error"], since_drift=t)["HI"]
        assert len(values) == 2 * 4 * 2
        assert rows["converged_skm_error", "HI"][f"T={t}"] == Box.of(values).median


def test_every_claim_has_a_number_and_a_verdict(stored: Path) -> None:
    steps = steps_of(stored)
    rows = read_csv(stored / "figures" / "theorem1.csv")
    claims = [claim for section in sections(steps, rows) for claim in section.claims]
    assert [claim.number for claim in claims] == [
        *(f"II.{i}" for i in range(1, 9)),
        *(f"III.{i}" for i in range(1, 4)),
        *(f"IV.{i}" for i in range(1, 17)),
    ]
    text = (stored / "FINDINGS.md").read_text()
    assert text == page(facts(stored), steps, rows)
    n_holding = sum(claim.holds for claim in claims)
    assert f"**{n_holding} of 27 claims hold**" in text
    assert text.count("— *holds*.") == n_holding
    assert text.count("— *does not hold*.") == 27 - n_holding
    for claim in claims:
        assert claim.says in text
        assert any(letter.isdigit() for letter in claim.measured)
    assert "- lumps: Lumps. made up" in text


def made_up(errors: dict[str, float], **changed: float) -> Steps:
    """Steps of one setting in which every batch is alike."""
    rows = []
    for batch in range(20):
        for method in METHODS:
            error = errors[method]
            row = {
                "dataset": "d", "n_clusters": 5, "epsilon": 1.0, "m": 2.0, "method": method,
                "concept": batch // 10, "since_drift": batch % 10 + 1, "n_iter": 5,
                "initial_error": error, "theorem2_bound": 2 * error, "surrogate_error": error,
                "skm_error": error, "n_distances": 100, "n_distances_plain": 100,
                "n_reseeded": batch % 3 == 0,
            }  # fmt: skip
            rows.append({**row, **changed})
    return Steps.of(pa.Table.from_pylist(rows))


def verdicts(steps: Steps) -> dict[str, bool]:
    found: list[Claim] = [
        *claims_errors.initialisation_claims(steps),
        *claims_errors.error_claims(steps),
        *claims_skm.skm_claims(steps),
        *claims_distances.distance_claims(steps),
    ]
    return {claim.number: claim.holds for claim in found}


def test_verdicts_follow_the_numbers() -> None:
    good = verdicts(made_up({"PC": 2.0, "CC": 2.0, "WI": 1.1, "HI": 1.0, "PSKM": 1.0}))
    assert good["IV.1"] and good["IV.5"] and good["IV.6"] and good["III.1"]
    assert not good["IV.4"]  # PC does not start best
    assert not good["IV.15"]  # nobody computes more than anybody else
    bad = verdicts(made_up({"PC": 1.0, "CC": 1.0, "WI": 2.0, "HI": 2.0, "PSKM": 3.0}))
    assert not (bad["IV.1"] or bad["IV.5"] or bad["IV.6"] or bad["IV.10"] or bad["IV.2"])
    assert bad["IV.4"]
    unbounded = verdicts(
        made_up(dict.fromkeys(METHODS, 1.0), theorem2_bound=0.5, initial_error=1.0)
    )
    assert not unbounded["III.1"]


def test_reseedings_are_counted_from_the_drift() -> None:
    steps = made_up(dict.fromkeys(METHODS, 1.0))
    # Batches 10 to 19 follow the drift; 12, 15 and 18 seeded a cluster anew.
    assert steps.reseeded_since_drift("PC").tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


def test_records_out_of_order_are_refused() -> None:
    table = pa.table({"method": ["HI", *METHODS[1:]], "concept": [1] * 5})
    with pytest.raises(InputError, match="the records are not ordered by batch and method"):
        Steps.of(table)


def test_the_figures_fit_a_column_and_its_colours_are_told_apart() -> None:
    rows = boxes(made_up({"PC": 2.0, "CC": 2.0, "WI": 1.1, "HI": 1.0, "PSKM": 1.0}),
                 SCORES["converged_skm_error"])  # fmt: skip
    figure = figures.draw_scores(rows, SCORES["converged_skm_error"])
    assert figure.get_figwidth() == 3.5
    found = [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]
    texts = [text for text in found if text.get_text()]
    assert min(float(text.get_fontsize()) for text in texts) >= 6

    def lightness(colour: str) -> float:
        red, green, blue = to_rgb(colour)
        return float(0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2)

    shades = [lightness(colour) for colour in figures.COLOURS.values()]
    assert len({round(shade, 2) for shade in shades}) == len(shades)
    assert all(math.isfinite(shade) for shade in shades)


def test_the_command_runs_from_data_to_findings_and_resumes(tmp_path: Path) -> None:
    words = ["experiment", "--out", str(tmp_path / "out"), "--clusters", "3", "--epsilon", "1"]
    done = kmeander(*words, "--processes", "2")
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert said[:2] == ["sample-places: built in.", "sample-sensors: built in."]
    assert any(line.startswith("[2/2] sample-") for line in said)
    assert "2 cells computed; " in done.stderr and " cells per minute." in done.stderr
    assert said[-1] == f"See {tmp_path / 'out' / 'FINDINGS.md'} and {tmp_path / 'out' / 'figures'}."
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    again = kmeander(*words, "--processes", "1")
    assert "0 cells computed (2 were there); " in again.stderr
    after = {p.name: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert after == before
    other = kmeander(*words, "--seed", "1")
    assert other.returncode == 1
    assert "holds another run, which differs in seed." in other.stderr


def test_without_the_extra_the_command_names_it(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
sys.argv = ["kmeander", "experiment", "--out", sys.argv[1]]
from kmeander.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "kmeander experiment: the figures need matplotlib: pip install 'kmeander[experiments]'"
    )
    assert not (tmp_path / "out").exists()
