"""ALARMS.md, and the tables that the documentation includes: Markdown of the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kmeander.experiments.alarms.cells import RUNS_PER_REPETITION, WITHIN
from kmeander.experiments.alarms.changes import CALM
from kmeander.experiments.alarms.pools import FOLDER, MAX_ROWS, N_CLUSTERS, N_ROWS
from kmeander.experiments.alarms.rivals import RIVALS
from kmeander.experiments.alarms.streams import STREAMS
from kmeander.experiments.alarms.tables import LEVEL, START
from kmeander.experiments.alarms.verdicts import verdicts_of
from kmeander.experiments.tables import markdown

Row = dict[str, Any]
Numbers = dict[str, list[Row]]

INTRODUCTION = (
    "How often kmeander's defaults raise an alarm where nothing changed, and how often they notice "
    "a change. Written by `kmeander experiment alarms`."
)
ABOUT_RATES = (
    "A batch is alarmed if it has at least one `drift`, `moved`, `grew`, `shrank` or `trend`. The "
    f"first {START} batches of each seed are counted apart: how many of them were alarmed on "
    "average, and how many with a confirmed event. A limit is rejected by a one-sided binomial "
    f"test at {100 * LEVEL:g} %, which takes batches as independent; a short run finds gross "
    'excess only. "up to" is the largest rate that the count leaves possible (one-sided bound, '
    "99 %). New ids per 1000 batches: those in any Step, and those reported as born or split."
)
ABOUT_RIVALS = (
    "The others judge the same batches, of fewer seeds. *Independent rows*: the same clusters and "
    "events, with the noise that independent rows would have. *KS*: two-sample tests of every "
    "column, the newest batch against the ten before, at 0.001 (Bonferroni). *ADWIN*: river's, "
    "with delta 0.001, on the error of each batch before it is learned, and on the mean of every "
    "column."
)
ABOUT_POWER = (
    "Share of the runs with an alarm, confirmed or not, in the batch of the change (0) or in one "
    f"of the next 1, 4 or 12; before it there were {CALM} batches, or as many as the name says. "
    "`power.csv` has confirmed alarms and events of any kind apart."
)
ABOUT_POWER_OF_RIVALS = (
    "The same at once and within 12 batches, for the others. Where rows depend on one another "
    "their shares say little: there they are alarmed without a change, too."
)
ABOUT_ABRUPT = (
    "Changes that follow one another: how many are reported in their own batch, and how many of "
    "the other batches are alarmed as well."
)
ABOUT_STREAMS = (
    "None of them changes, but for the two that walk: clusters, devices and cycles stay what they "
    f"are from the first batch to the last. A pool has up to {MAX_ROWS:,} rows of a real stream "
    f"(`{FOLDER}/` in the folder of data), standardised; each batch draws {N_ROWS} of them, and "
    f"K is {N_CLUSTERS}."
)


def page(run: Row, numbers: Numbers) -> str:
    """Return ALARMS.md."""
    found = verdicts_of(numbers)
    n_kept = sum(verdict.is_kept for verdict in found)
    parts = [
        "# False alarms and power",
        INTRODUCTION,
        f"**{n_kept} of {len(found)} promises kept.**",
        _run(run),
        "![Alarmed batches per 1000, by stream](figures/alarms.png)",
    ]
    if numbers["power"]:
        parts.append("![Share of changes noticed, by batches since](figures/power.png)")
    parts += _tables(run, numbers, "##")
    parts += ["## The streams", *_streams(numbers["alarms"])]
    return "\n\n".join(parts) + "\n"


def table(run: Row, numbers: Numbers) -> str:
    """Return the tables alone, for a page that includes them."""
    return "\n\n".join([_run(run), *_tables(run, numbers, "###")]) + "\n"


def _tables(run: Row, numbers: Numbers, heading: str) -> list[str]:
    rivals = run["rivals"]
    parts = [f"{heading} Promises", verdicts_table(numbers)]
    if numbers["alarms"]:
        parts += [f"{heading} False alarms", ABOUT_RATES, rates_table(numbers["alarms"])]
        parts += [ABOUT_RIVALS, rivals_table(numbers["alarms"], rivals)]
    if numbers["power"]:
        parts += [f"{heading} Power", ABOUT_POWER, power_table(numbers["power"])]
        parts += [ABOUT_POWER_OF_RIVALS, power_of_rivals_table(numbers["power"], rivals)]
    if numbers["abrupt"]:
        parts += [f"{heading} Changes again and again", ABOUT_ABRUPT]
        parts.append(abrupt_table(numbers["abrupt"], rivals))
    return parts


def verdicts_table(numbers: Numbers) -> str:
    """Return what was asked beside what was measured."""
    return markdown(
        ["promise", "asked", "measured", "kept"],
        [
            [verdict.promise, verdict.asked, verdict.measured, verdict.word]
            for verdict in verdicts_of(numbers)
        ],
    )


def rates_table(rates: Sequence[Row]) -> str:
    """Return the table of false alarms."""
    return markdown(
        ["stream", "batches", "alarmed per 1000", "up to", "limit", f"in the first {START}",
         "confirmed there", "new ids", "reported"],
        [
            [
                row["stream"], f"{row['batches']:,}", f"{row['alarmed_per_1000']:.1f}",
                f"{row['upper_99']:.1f}", _limit(row), f"{row['in_first_30']:.1f}",
                f"{row['confirmed_in_first_30']:.1f}", f"{row['ids_per_1000']:.1f}",
                f"{row['births_per_1000']:.1f}",
            ]
            for row in rates
        ],
    )  # fmt: skip


def _limit(row: Row) -> str:
    if math.isnan(row["limit_per_1000"]):
        return "none"
    return f"{row['limit_per_1000']:g}, " + ("**rejected**" if row["rejected"] else "not rejected")


def rivals_table(rates: Sequence[Row], rivals: Sequence[str]) -> str:
    """Return alarmed batches per 1000, of kmeander and of the others."""
    return markdown(
        ["alarmed per 1000", "kmeander", *(RIVALS[key] for key in rivals)],
        [
            [
                row["stream"], f"{row['alarmed_per_1000']:.1f}",
                *(_number(row[f"{key}_per_1000"], ".1f") for key in rivals),
            ]
            for row in rates
        ],
    )  # fmt: skip


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else f"{value:{form}}"


def power_table(rows: Sequence[Row]) -> str:
    """Return the table of power: shares within 0, 1, 4 and 12 batches."""
    return markdown(
        ["stream", "change", "runs", f"within {', '.join(map(str, WITHIN))}", "confirmed"],
        [
            [
                row["stream"], row["change"], str(row["runs"]),
                " ".join(f"{row[f'within_{t}']:.2f}" for t in WITHIN),
                " ".join(f"{row[f'confirmed_within_{t}']:.2f}" for t in WITHIN),
            ]
            for row in rows
        ],
    )  # fmt: skip


def power_of_rivals_table(rows: Sequence[Row], rivals: Sequence[str]) -> str:
    """Return the shares noticed at once and within 12 batches, of kmeander and of the others."""
    soon, late = min(WITHIN), max(WITHIN)
    keys = {"": "kmeander", **{f"{key}_": RIVALS[key] for key in rivals}}
    return markdown(
        ["stream", "change", *keys.values()],
        [
            [
                row["stream"], row["change"],
                *(
                    f"{_number(row[f'{key}within_{soon}'], '.2f')} "
                    f"{_number(row[f'{key}within_{late}'], '.2f')}"
                    for key in keys
                ),
            ]
            for row in rows
        ],
    )  # fmt: skip


def abrupt_table(rows: Sequence[Row], rivals: Sequence[str]) -> str:
    """Return how many of the changes were reported at once, and how many batches alarmed beside."""
    return markdown(
        ["stream", "changes", "reported at once", "confirmed", "other batches",
         *(f"{RIVALS[key]}: reported, others" for key in rivals)],
        [
            [
                row["stream"], str(row["changes"]), str(row["reported"]),
                str(row["reported_confirmed"]),
                str(row["between"]),
                *(
                    f"{row[f'{key}_reported']} of {row[f'{key}_changes']}, {row[f'{key}_between']}"
                    for key in rivals
                ),
            ]
            for row in rows
        ],
    )  # fmt: skip


def _run(run: Row) -> str:
    seeds, of_changes = run["seeds"], run["seeds_of_changes"]
    defaults = ", ".join(f"{name}={value!r}" for name, value in run["defaults"].items())
    version = f"kmeander {run['kmeander']} ({run['instruction_set']})"
    pools = ", ".join(run["pools"])
    natural = (
        ""
        if len(run["pools"]) > 1
        else f"; natural pools need a folder of data with `{FOLDER}/` in it"
    )
    lines = [
        f"- {version}, K as in the stream, otherwise the defaults: {defaults}",
        f"- {run['n_batches']} batches of each stream and seed; {_span(seeds)}"
        + ("" if len(of_changes) >= 10 * RUNS_PER_REPETITION else "; a short run"),
        f"- power: {len(of_changes)} runs of each change; {_span(of_changes)}",
        f"- pools: {pools}{natural}",
    ]
    if "adwin_error" not in run["rivals"]:
        lines.append("- ADWIN is left out: river is not installed")
    return "\n".join(lines)


def _span(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _streams(rates: Sequence[Row]) -> list[str]:
    chosen = [STREAMS[row["stream"]] for row in rates if row["stream"] in STREAMS]
    return [
        ABOUT_STREAMS,
        markdown(
            ["stream", "K", "d", "stands for", "rows", "season given"],
            [
                [
                    stream.name, str(stream.n_clusters), str(stream.n_features), stream.stands_for,
                    "independent" if stream.independent else "dependent", str(stream.season or ""),
                ]
                for stream in chosen
            ],
        ),
    ]  # fmt: skip
