"""The picture in the docs, drawn from the JSON file alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

Row = dict[str, Any]

# Okabe and Ito's colours, which colour-blind readers can tell apart; markers tell them, too.
LOOKS = {
    "kmeander": ("#0072B2", "o"),
    "kmeander hungarian": ("#56B4E9", "D"),
    "plain kernel": ("#999999", "s"),
    "scikit-learn lloyd": ("#D55E00", "^"),
    "scikit-learn elkan": ("#E69F00", "v"),
    "faiss": ("#009E73", "P"),
    "MiniBatchKMeans": ("#CC79A7", "X"),
    "river KMeans": ("#000000", "<"),
    "river STREAMKMeans": ("#000000", ">"),
}


def draw(results: Row) -> Figure:
    """Draw time per batch and error of everybody, for every stream run with one thread."""
    races = [race for race in results["races"] if race["n_threads"] == 1]
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(10, 1.6 + 0.42 * len(races)), layout="constrained")
        times, errors = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
        for place, race in enumerate(races):
            runs = {run["name"]: run for run in race["runs"]}
            own = runs["kmeander"]
            for axes in (times, errors):
                axes.axhline(place, color="#EEEEEE", linewidth=6, zorder=0)
            for name, (colour, marker) in LOOKS.items():
                run = runs.get(name)
                if run is None:
                    continue
                look = {"color": colour, "marker": marker, "markersize": 7, "linestyle": "none"}
                hollow = {"markerfacecolor": "none"} if run["extrapolated"] else {}
                times.plot(run["times_kmeander"], place, **look, **hollow)
                ratio = _error_ratio(run, own)
                if ratio is not None:
                    errors.plot(ratio, place, **look)
        times.set_xscale("log")
        times.set_yticks(range(len(races)), [_name(race) for race in races])
        times.set_ylim(len(races) - 0.4, -0.6)
        times.xaxis.set_major_formatter("{x:g}")
        for axes in (times, errors):
            axes.axvline(1, color="#0072B2", linewidth=0.8, zorder=0)
            axes.tick_params(axis="y", length=0)
        times.set_xlabel("mean time per batch, kmeander = 1 (log scale)")
        errors.set_xlabel("mean surrogate error, kmeander = 1")
        times.set_title("Time: left is faster", loc="left", fontsize=10)
        errors.set_title("Error: left is better; refits lie at 1, too", loc="left", fontsize=10)
        present = {run["name"] for race in races for run in race["runs"]}
        handles = [
            mpl.lines.Line2D([], [], color=c, marker=m, linestyle="none", label=name)
            for name, (c, m) in LOOKS.items()
            if name in present
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
        figure.suptitle(
            f"{'Quick run on ' if results['quick'] else ''}{results['machine']}, one thread; "
            "(rows per batch, K, columns); hollow: timed on few rows",
            fontsize=9,
            color="#555555",
        )
    return figure


def _error_ratio(run: Row, own: Row) -> float | None:
    """Errors over kmeander's at the same batches; None where it is not known which those are."""
    mine, others = run["surrogate_errors"], own["surrogate_errors"]
    if not mine or (len(mine) < len(others) and len(run["seconds"]) > 1):
        return None
    return float(sum(mine) / sum(others[: len(mine)]))


def _name(race: Row) -> str:
    return f"{race['stream']} ({race['shape']})"


def main() -> None:
    """Draw the picture of a results file again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    draw(json.loads(arguments.results.read_text(encoding="utf-8"))).savefig(
        arguments.picture, dpi=150
    )


if __name__ == "__main__":
    main()
