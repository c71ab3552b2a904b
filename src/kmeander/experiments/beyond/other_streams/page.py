"""The tables of other streams, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from kmeander.experiments.beyond.contestants import DEFAULT, RIVER
from kmeander.experiments.beyond.other_streams.natural import (
    CHOSEN_ON,
    LOOKED_AT,
    NOT_SCORED,
    ROWS_OF_RIVER,
)
from kmeander.experiments.beyond.other_streams.tables import (
    ALL_PEERS,
    RIVALS,
    T_OF_VISITS,
    Numbers,
    Row,
    geometric_mean,
)
from kmeander.experiments.beyond.other_streams.variants import EARLIER, ON_SYNTHETIC
from kmeander.experiments.tables import SHOWN, markdown

SYNTHETIC = (
    "SKM error over that of the best of ten restarts (greedy k-means++, Lloyd) on all batches "
    "since the drift, at T = 1, 2, 4 and 10; the mean over drifts and seeds. Distances are "
    "the default's over HI's."
)
NATURAL = (
    f"Mean error of the next batch, of all batches but the first {NOT_SCORED}, over the best of "
    f"{', '.join(RIVALS)} in hindsight, for each stream by itself; the same of the first and the "
    "second half. The last columns: the default's error over that of a peer, its distances over "
    "HI's, and the share of the largest batch in the sum of the best setting's errors. Constants "
    "were chosen on streams with *."
)
RETURNING = (
    "Pools of real rows, drawn independently, and what a drift makes of them, in turns, ten "
    "batches each. Excess: the error of a batch before it is learned, above that of the concept's "
    "best of ten restarts on the same batch; at T = 2 one batch of the visit has been learned. "
    "Median, and mean in brackets."
)
VARIANTS = (
    "How far the error lies above the default's when one part is taken out or exchanged, or with "
    "other settings: in the mean, and where it is most. Of returns it is the difference of the "
    "median excess at T = 2."
)


def sections(numbers: Numbers) -> Iterator[str]:
    """Yield headings, words and tables."""
    yield "## Synthetic streams"
    yield SYNTHETIC
    yield synthetic_table(numbers)
    if numbers["natural"]:
        yield "## Natural streams"
        yield NATURAL
        yield natural_table(numbers)
        if any(row["method"] == RIVER for row in numbers["natural"]):
            yield (
                f"{RIVER} is slow, and learned the first {ROWS_OF_RIVER:,} rows with one seed; it "
                "is compared on those."
            )
    if numbers["returning"]:
        yield "## Concepts that return"
        yield RETURNING
        yield returning_table(numbers)
    yield "## Variants of the default"
    yield VARIANTS
    yield variants_table(numbers)


def facts_line(facts: dict[str, Any]) -> str:
    """Return what the head of the page says of these streams."""
    seeds = facts["seeds"]
    return (
        f"- other streams: seeds {seeds[0]} to {seeds[-1]}; {len(facts['kinds'])} synthetic kinds, "
        f"{len(facts['streams'])} natural streams, {len(facts['pools'])} pools of concepts"
    )


def synthetic_table(numbers: Numbers) -> str:
    """Return the table of synthetic streams."""
    values = {
        (row["stream"], row["method"], row["since_drift"]): row["over_restarts"]
        for row in numbers["synthetic"]
    }
    work = _work(numbers, "synthetic")
    shown = (*ON_SYNTHETIC[1:], DEFAULT)
    return markdown(
        ["stream", *shown, "distances"],
        [
            [
                stream,
                *(" ".join(f"{values[stream, name, t]:.3f}" for t in SHOWN) for name in shown),
                f"{work[stream, DEFAULT]['over_HI']:.2f}",
            ]
            for stream in dict.fromkeys(row["stream"] for row in numbers["synthetic"])
        ],
    )


def natural_table(numbers: Numbers) -> str:
    """Return the table of natural streams, with geometric means at its end."""
    rows = {(row["stream"], row["method"]): row for row in numbers["natural"]}
    streams = list(dict.fromkeys(row["stream"] for row in numbers["natural"]))
    peers = [name for name in ALL_PEERS if any(key[1] == name for key in rows)]
    work = _work(numbers, "natural")
    shown = [name for name in RIVALS if name not in (EARLIER,)]
    lines = [
        [
            f"{stream}{'*' * (stream in CHOSEN_ON)}",
            "**{over_best:.3f}** {first_half:.3f} {second_half:.3f}".format(
                **rows[stream, DEFAULT]
            ),
            *(f"{rows[stream, name]['over_best']:.3f}" for name in (EARLIER, *shown)),
            *(f"{rows[stream, name]['over_it']:.3f}" for name in peers),
            f"{work[stream, DEFAULT]['over_HI']:.2f}",
            f"{min(_best(rows, stream))[1]:.0%}",
        ]
        for stream in streams
    ]

    def means(chosen: Iterable[str]) -> list[str]:
        found = list(chosen)
        return [
            f"**{geometric_mean(rows[s, DEFAULT]['over_best'] for s in found):.3f}** "
            + " ".join(
                f"{geometric_mean(rows[s, DEFAULT][half] for s in found):.3f}"
                for half in ("first_half", "second_half")
            ),
            *(
                f"{geometric_mean(rows[s, name]['over_best'] for s in found):.3f}"
                for name in (EARLIER, *shown)
            ),
            *(f"{geometric_mean(rows[s, name]['over_it'] for s in found):.3f}" for name in peers),
            f"{geometric_mean(work[s, DEFAULT]['over_HI'] for s in found):.2f}",
            "",
        ]

    groups = {
        "geometric mean": streams,
        "those without *": [s for s in streams if s not in CHOSEN_ON],
        "those that nothing was developed on": [s for s in streams if s not in LOOKED_AT],
    }
    lines += [[words, *means(chosen)] for words, chosen in groups.items() if chosen]
    return markdown(
        ["stream", DEFAULT, EARLIER, *shown, *(f"over {name}" for name in peers), "distances",
         "one batch"],
        lines,
    )  # fmt: skip


def _best(rows: dict[tuple[str, str], Row], stream: str) -> list[tuple[float, float]]:
    return [
        (rows[stream, name]["over_best"], rows[stream, name]["largest_batch"])
        for name in RIVALS
        if (stream, name) in rows
    ]


def returning_table(numbers: Numbers) -> str:
    """Return the table of concepts that return."""
    values = {
        (row["epsilon"], row["method"], row["visit"], row["since_drift"]): row
        for row in numbers["returning"]
    }
    methods = list(dict.fromkeys(key[1] for key in values))
    epsilons = list(dict.fromkeys(key[0] for key in values))
    columns = [
        (epsilon, visit, t)
        for epsilon in epsilons
        for visit in ("first", "return")
        for t in T_OF_VISITS
    ]
    return markdown(
        ["method", *(f"epsilon {e:g}, {visit}, T = {t}" for e, visit, t in columns)],
        [
            [
                method,
                *(
                    "{median:.3f} ({mean:.3f})".format(**values[e, method, visit, t])
                    for e, visit, t in columns
                ),
            ]
            for method in methods
        ],
    )


def variants_table(numbers: Numbers) -> str:
    """Return what each variant costs beside the default."""
    return markdown(
        [
            "variant", "synthetic", "T = 1", "T = 10", "most", "natural", "most",
            "return, epsilon 0.5", "epsilon 2", "distances",
        ],
        [
            [
                row["method"],
                *(_percent(row[key]) for key in ("synthetic", "synthetic_T1", "synthetic_T10")),
                _most(row, "synthetic"),
                _percent(row["natural"]),
                _most(row, "natural"),
                *(_difference(row[key]) for key in ("return_0.5", "return_2")),
                _percent(row["distances"]),
            ]
            for row in numbers["variants"]
        ],
    )  # fmt: skip


def _most(row: Row, panel: str) -> str:
    most = _percent(row[f"{panel}_most"])
    return f"{most} ({row[f'{panel}_where']})" if most else ""


def _percent(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.1%}"


def _difference(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.3f}"


def _work(numbers: Numbers, panel: str) -> dict[tuple[str, str], Row]:
    return {(row["stream"], row["method"]): row for row in numbers["work"] if row["panel"] == panel}
