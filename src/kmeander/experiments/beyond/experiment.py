"""The whole comparison: streams, numbers, figure, and BEYOND.md with a word on every goal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kmeander.exceptions import InputError, argument
from kmeander.experiments import figures, storage
from kmeander.experiments.beyond import figure, tables
from kmeander.experiments.beyond.contestants import MINI_BATCH, RIVER, has_river
from kmeander.experiments.beyond.goals import Goal, goals
from kmeander.experiments.beyond.other_streams import figure as other_figure
from kmeander.experiments.beyond.other_streams import goals as other_goals
from kmeander.experiments.beyond.other_streams import page as other_page
from kmeander.experiments.beyond.other_streams import tables as other_streams
from kmeander.experiments.beyond.other_streams.plan import PANELS, Plan
from kmeander.experiments.beyond.protocol import cells_of
from kmeander.experiments.datasets import LoadedDataset, MissingDataset
from kmeander.experiments.grid import CellDone, Grid, run_grid
from kmeander.experiments.storage import AnyCell
from kmeander.experiments.tables import SHOWN, markdown, read_csv, write_csv
from kmeander.models.settings import DEFAULTS

INTRODUCTION = (
    "kmeander's defaults beside the methods of the paper, each on its own way through the same "
    "streams, and beside MiniBatchKMeans and river's KMeans. PSKM knows every drift, nobody "
    "else is. Written by `kmeander experiment beyond`."
)

COLUMNS = (
    "Mean over all datasets, settings and drifts of the SKM error above the best method of that "
    "batch, as a share of it, at T batches since the drift; the same of the prequential error over "
    "all T; distances really computed, as a share of what plain HI counts; the processor's time "
    "per batch."
)

ORDER = (
    "Mean prequential error over all batches but the first and over all seeds, with its standard "
    "error; batches of 500 rows, columns standardised over the whole file. PC and HI have the "
    "paper's rho for epsilon = 0.5."
)


def check(grid: Grid, *, river: bool) -> None:
    """Refuse what cannot be compared, before anything is computed."""
    if len(grid.ms) > 1:
        raise InputError(
            f"m must be one number here, got {', '.join(f'{m:g}' for m in grid.ms)}. Run the "
            f"others into folders of their own with {argument('out')}."
        )
    if river and not has_river():
        raise InputError(
            f"{argument('river', True)} needs river: pip install river, or leave it out."
        )


def run_beyond(
    found: Sequence[LoadedDataset],
    missing: Sequence[MissingDataset],
    grid: Grid,
    others: Plan,
    folder: Path,
    *,
    processes: int = 1,
    tell: Callable[[CellDone], None] = lambda _: None,
) -> Path:
    """Run what `folder` does not hold yet, then draw and write everything anew.

    Parameters
    ----------
    found, missing
        As from `load_datasets`.
    grid : Grid
        Of the paper's protocol.
    others : Plan
        Other streams, and whether river's KMeans, which is slow, takes part.
    folder : Path
        Gets ``steps/`` (Parquet files), ``figures/`` (as PDF and PNG, the numbers as CSV),
        ``run.json`` and ``BEYOND.md``.
    processes : int, default=1
    tell : callable
        Hears of every stream that is there.

    Returns
    -------
    Path
        Of ``BEYOND.md``.
    """
    check(grid, river=others.river)
    cells = all_cells(found, grid, others)
    data = {**{dataset.key: dataset.points for dataset in found}, **others.data()}
    paths = run_grid(cells, data, folder / "steps", processes=processes, tell=tell)
    run = {
        **_facts(found, missing, grid, others.river),
        "other_streams": others.facts(),
        "streams": [{"name": cell.name, "methods": list(cell.methods)} for cell in cells],
    }
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    return report(folder, paths)


def all_cells(found: Sequence[LoadedDataset], grid: Grid, others: Plan) -> list[AnyCell]:
    """Return every cell of a run: the paper's protocol first."""
    keys = [dataset.key for dataset in found]
    return [*cells_of(grid, keys, river=others.river), *others.cells()]


def report(folder: Path, paths: Sequence[Path]) -> Path:
    """Draw the figure and write the page from the files of a run alone."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    kinds = {
        kind: [path for path in paths if path.name.startswith(f"{kind}-")]
        for kind in ("drift", "still", "order", *PANELS)
    }
    methods = next(
        tuple(stream["methods"]) for stream in run["streams"] if stream["name"].startswith("drift-")
    )
    steps = tables.steps_of(storage.load(kinds["drift"]), methods)
    numbers = {
        "since_drift": tables.errors_since_drift(steps),
        "among_four": tables.among_four(steps),
        "beside_pskm": tables.beside_pskm(steps),
        "costs": tables.costs(steps),
        "at_rest": tables.at_rest(storage.load(kinds["still"])),
        "in_order": tables.in_order(storage.load(kinds["order"])) if kinds["order"] else [],
        **other_streams.numbers_of(
            row for kind in PANELS if kinds[kind] for row in storage.load(kinds[kind]).to_pylist()
        ),
    }
    drawn = folder / "figures"
    drawn.mkdir(exist_ok=True)
    for name, rows in numbers.items():
        if rows:
            write_csv(drawn / f"{name}.csv", rows)
    figures.save(figure.draw(numbers), drawn / "beyond")
    figures.save(other_figure.draw(numbers), drawn / "other_streams")
    path = folder / "BEYOND.md"
    path.write_text(page(run, numbers), encoding="utf-8")
    return path


def goals_of(numbers: dict[str, list[dict[str, Any]]]) -> list[Goal]:
    """Return all goals, measured."""
    return [
        *goals(*(numbers[name] for name in _OF_GOALS)),
        *other_goals.goals(numbers),
    ]


_OF_GOALS = ("among_four", "beside_pskm", "costs", "in_order", "at_rest")


def numbers_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers that a run has written; none for streams that it did not have."""
    drawn = folder / "figures"
    return {
        name: read_csv(drawn / f"{name}.csv") if (drawn / f"{name}.csv").exists() else []
        for name in ("since_drift", *_OF_GOALS, *other_streams.NAMES)
    }


def page(run: dict[str, Any], numbers: dict[str, list[dict[str, Any]]]) -> str:
    """Return BEYOND.md."""
    found = goals_of(numbers)
    measured = [goal for goal in found if goal.met is not None]
    n_met = sum(bool(goal.met) for goal in measured)
    unmeasured = len(found) - len(measured)
    parts = [
        "# Beyond the paper",
        INTRODUCTION,
        f"**{n_met} of {len(measured)} goals met**"
        + (f"; {unmeasured} could not be measured." if unmeasured else "."),
        _run(run),
        "![The default beside the others](figures/beyond.png)",
        "![The default on other streams](figures/other_streams.png)",
        "## Goals",
        markdown(
            ["goal", "measured", "met"],
            [[goal.says, goal.measured, goal.verdict] for goal in found],
        ),
        "## Error after a drift",
        COLUMNS,
        methods_table(numbers),
    ]
    if numbers["in_order"]:
        parts += ["## Recordings in file order", ORDER, order_table(numbers)]
    parts += ["## Without drift", _rest_table(numbers)]
    parts += other_page.sections(numbers)
    return "\n\n".join(parts) + "\n"


def methods_table(numbers: dict[str, list[dict[str, Any]]]) -> str:
    """Return the table of all methods."""
    errors = {(row["method"], row["since_drift"]): row for row in numbers["since_drift"]}
    times = [t for t in SHOWN if any(key[1] == t for key in errors)]
    return markdown(
        ["method", *(f"T = {t}" for t in times), "prequential", "distances", "ms, median"],
        [
            [
                row["method"],
                *(f"{errors[row['method'], t]['skm_mean']:.3f}" for t in times),
                f"{row['prequential_mean']:.3f}",
                f"{row['distances_of_plain_HI']:.3f}",
                f"{row['milliseconds_median']:.2f}",
            ]
            for row in numbers["costs"]
        ],
    )


def order_table(numbers: dict[str, list[dict[str, Any]]]) -> str:
    """Return the table of recordings."""
    rows = numbers["in_order"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    places = list(dict.fromkeys((row["dataset"], row["n_clusters"]) for row in rows))
    errors = {
        (row["dataset"], row["n_clusters"], row["method"]): (
            f"{row['prequential_error']:.3f} ± {row['standard_error']:.3f}"
        )
        for row in rows
    }
    return markdown(
        ["recording", "K", *methods],
        [
            [dataset, str(k), *(errors[dataset, k, method] for method in methods)]
            for dataset, k in places
        ],
    )


def _rest_table(numbers: dict[str, list[dict[str, Any]]]) -> str:
    return markdown(
        ["dataset", "K", "batches", "false alarms", "SKM error above fixed forgetting's"],
        [
            [
                row["dataset"], str(row["n_clusters"]), str(row["n"]), str(row["false_alarms"]),
                f"{row['skm_above_fixed']:+.3%}",
            ]
            for row in numbers["at_rest"]
        ],
    )  # fmt: skip


def _run(run: dict[str, Any]) -> str:
    grid = run["grid"]
    peers = f"{MINI_BATCH} of scikit-learn {run['scikit_learn']}"
    river = f"{RIVER} of river {run['river']}" if run["river"] else f"{RIVER} is left out (--river)"
    version = f"kmeander {run['kmeander']} ({run['instruction_set']}), seed {grid['seed']}"
    settings = f"K in {grid['n_clusters']}, epsilon in {grid['epsilons']}, m = {grid['ms'][0]:g}"
    lines = [
        f"- {version}, {grid['repetitions']} repetition(s); {peers}; {river}",
        f"- the paper's protocol: {settings}, {grid['n_concepts'] - 1} drifts",
        other_page.facts_line(run["other_streams"]),
        f"- default: {', '.join(f'{name}={value!r}' for name, value in run['defaults'].items())}",
        *(f"- {entry['key']}: {entry['title']}. {entry['note']}" for entry in run["datasets"]),
        *(f"- {line}" for line in run["missing"]),
    ]
    return "\n".join(lines)


def _facts(
    found: Sequence[LoadedDataset], missing: Sequence[MissingDataset], grid: Grid, river: bool
) -> dict[str, Any]:
    from importlib.metadata import version

    from kmeander import __version__, _kernel

    return {
        "kmeander": __version__,
        "instruction_set": _kernel.instruction_set(),
        "scikit_learn": version("scikit-learn"),
        "river": version("river") if river else None,
        "defaults": DEFAULTS,
        "grid": asdict(grid),
        "datasets": [
            {"key": entry.key, "title": entry.title, "note": entry.note} for entry in found
        ],
        "missing": [str(entry) for entry in missing],
    }
