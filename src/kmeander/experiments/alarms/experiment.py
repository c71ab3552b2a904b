"""The whole measurement: streams, changes, numbers, figure, and ALARMS.md with the verdicts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kmeander.arrays import Points
from kmeander.experiments import figures, storage
from kmeander.experiments.alarms import figure, tables
from kmeander.experiments.alarms.changes import BASES, CALM
from kmeander.experiments.alarms.measure import WITHIN, Length, cells_of
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.alarms.tables import LEVEL, LIMIT, PROMISE, START
from kmeander.experiments.grid import CellDone, run_grid
from kmeander.experiments.tables import markdown, write_csv
from kmeander.models.settings import DEFAULTS

# Seeds of each stream: of a run of less than a minute, and of one that is long enough to judge.
SHORT, FULL = 1, 10

INTRODUCTION = (
    "How often kmeander's defaults raise an alarm where nothing changed, and how often they notice "
    "a change. Written by `kmeander experiment alarms`."
)
ABOUT_RATES = (
    f"A batch is alarmed if it has at least one `drift`, `moved`, `grew` or `shrank`. The first "
    f"{START} batches of each seed are counted apart: in that column stands the mean number of "
    f"alarmed batches among them. The limit of a stream is {LIMIT:g} alarmed batches in 1000; it "
    f"is rejected by a one-sided binomial test at {100 * LEVEL:g} %, which takes batches as "
    'independent. A short run finds gross excess only: "up to" is the largest rate that its count '
    "leaves possible (one-sided bound, 99 %)."
)
ABOUT_POWER = (
    f"Share of the runs in which an event of any kind came in the batch of the change (0) or in "
    f"one of the next 1, 4 or 12; before it there were {CALM} batches of independent rows. "
    "`power.csv` has the alarms alone, too."
)
ABOUT_STREAMS = (
    "None of them changes: clusters, devices and cycles stay what they are from the first batch to "
    "the last."
)


def run_alarms(
    length: Length,
    folder: Path,
    *,
    streams: Sequence[str] = tuple(STREAMS),
    bases: Sequence[str] = tuple(BASES),
    processes: int = 1,
    tell: Callable[[CellDone], None] = lambda _: None,
) -> Path:
    """Run what `folder` does not hold yet, then draw and write everything anew.

    Parameters
    ----------
    length : Length
    folder : Path
        Gets ``steps/`` (one Parquet file per stream and seed), ``figures/`` (the figure as PDF and
        PNG, its numbers as CSV), ``run.json`` and ``ALARMS.md``.
    streams, bases : sequence of str, optional
        Names of the streams that do not change, and of those that do; by default all.
    processes : int, default=1
    tell : callable
        Hears of every stream that is there.

    Returns
    -------
    Path
        Of ``ALARMS.md``.
    """
    cells = cells_of(length, streams, bases)
    paths = run_grid(
        cells, first_batches(streams, bases), folder / "steps", processes=processes, tell=tell
    )
    run = _facts(length, [path.name for path in paths])
    (folder / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")
    return report(folder)


def first_batches(streams: Sequence[str], bases: Sequence[str]) -> dict[str, Points]:
    """Return a batch of each stream, by which stored cells know that it is still the same."""
    return {
        **{name: next(STREAMS[name].batches(0)) for name in streams},
        **{name: next(BASES[name].before(0)) for name in bases},
    }


def report(folder: Path) -> Path:
    """Draw the figure and write the page from the files of a run alone."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    records = storage.load([folder / "steps" / name for name in run["files"]]).to_pylist()
    rates = tables.alarm_rates(record for record in records if not record["change"])
    numbers = {
        "alarms": rates,
        "pooled": tables.pooled(rates),
        "power": tables.power(record for record in records if record["change"]),
    }
    drawn = folder / "figures"
    drawn.mkdir(exist_ok=True)
    for name, rows in numbers.items():
        if rows:
            write_csv(drawn / f"{name}.csv", rows)
    figures.save(figure.draw(rates), drawn / "alarms")
    path = folder / "ALARMS.md"
    path.write_text(page(run, numbers), encoding="utf-8")
    return path


def page(run: dict[str, Any], numbers: dict[str, list[dict[str, Any]]]) -> str:
    """Return ALARMS.md."""
    rates = numbers["alarms"]
    n_within, n_all = sum(not row["rejected"] for row in rates), len(rates)
    parts = ["# False alarms and power", INTRODUCTION]
    parts += [_promise(row) for row in numbers["pooled"]]
    parts += [
        f"**For {n_within} of {n_all} streams the limit of {LIMIT:g} in 1000 is not rejected.**",
        _run(run),
        "![Alarmed batches per 1000, by stream](figures/alarms.png)",
        "## False alarms",
        ABOUT_RATES,
        rates_table(rates),
    ]
    if numbers["power"]:
        parts += ["## Power", ABOUT_POWER, power_table(numbers["power"])]
    parts += ["## The streams", *_streams(rates)]
    return "\n\n".join(parts) + "\n"


def rates_table(rates: Sequence[dict[str, Any]]) -> str:
    """Return the table of false alarms."""
    return markdown(
        ["stream", "batches", "alarmed per 1000", "up to", "limit", "in the first 30",
         "new ids per 1000"],
        [
            [
                row["stream"], f"{row['batches']:,}", f"{row['alarmed_per_1000']:.1f}",
                f"{row['upper_99']:.1f}", "**rejected**" if row["rejected"] else "not rejected",
                f"{row['in_first_30']:.1f}", f"{row['ids_per_1000']:.1f}",
            ]
            for row in rates
        ],
    )  # fmt: skip


def power_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of power: for each stream the shares within 0, 1, 4 and 12 batches."""
    streams = list(dict.fromkeys(row["stream"] for row in rows))
    shares = {
        (row["stream"], row["change"]): " ".join(f"{row[f'within_{t}']:.2f}" for t in WITHIN)
        for row in rows
    }
    return markdown(
        ["change", *(f"{name}: within {', '.join(map(str, WITHIN))}" for name in streams)],
        [
            [change, *(shares[name, change] for name in streams)]
            for change in dict.fromkeys(row["change"] for row in rows)
        ],
    )


def _promise(row: dict[str, Any]) -> str:
    verdict = "broken" if row["rejected"] else "not broken"
    return (
        f"**One false alarm in 1000 batches of independent rows: {verdict}.** {row['alarmed']} of "
        f"{row['batches']:,} batches of {row['streams']} streams alarmed, "
        f"{row['alarmed_per_1000']:.2f} in 1000; the count leaves up to {row['upper_99']:.2f} "
        f"possible (one-sided bound, 99 %), and {PROMISE:g} is promised."
    )


def _run(run: dict[str, Any]) -> str:
    seeds, of_changes = run["seeds"], run["seeds_of_changes"]
    defaults = ", ".join(f"{name}={value!r}" for name, value in run["defaults"].items())
    version = f"kmeander {run['kmeander']} ({run['instruction_set']})"
    lines = [
        f"- {version}, K as in the stream, otherwise the defaults: {defaults}",
        f"- {run['n_batches']} batches of each stream and seed; {_span(seeds)}"
        + ("; a short run, the full one has ten seeds" if _is_short(run) else ""),
        f"- power: {len(of_changes)} runs of each change; {_span(of_changes)}",
    ]
    return "\n".join(lines)


def _is_short(run: dict[str, Any]) -> bool:
    return bool(run["repetitions"] < FULL)


def _span(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _streams(rates: Sequence[dict[str, Any]]) -> list[str]:
    chosen = [STREAMS[row["stream"]] for row in rates]
    return [
        ABOUT_STREAMS,
        markdown(
            ["stream", "K", "d", "stands for", "rows"],
            [
                [
                    stream.name, str(stream.n_clusters), str(stream.n_features), stream.stands_for,
                    "independent" if stream.independent else "dependent",
                ]
                for stream in chosen
            ],
        ),
    ]  # fmt: skip


def _facts(length: Length, files: Sequence[str]) -> dict[str, Any]:
    from kmeander import __version__, _kernel

    return {
        "kmeander": __version__,
        "instruction_set": _kernel.instruction_set(),
        "defaults": DEFAULTS,
        **asdict(length),
        "seeds": list(length.seeds),
        "seeds_of_changes": list(length.seeds_of_changes),
        "files": list(files),
    }
