"""``kmeander experiment``: the paper's, those beyond it, and false alarms; figures and findings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from kmeander.exceptions import KmeanderError

if TYPE_CHECKING:
    from kmeander.experiments.beyond.other_streams.plan import Plan
    from kmeander.experiments.datasets import LoadedDataset, MissingDataset
    from kmeander.experiments.grid import CellDone, Grid


class Which(StrEnum):
    """Which experiment."""

    PAPER = "paper"
    BEYOND = "beyond"
    ALARMS = "alarms"


def experiment(
    which: Annotated[
        Which,
        typer.Argument(
            help="The paper's experiments, kmeander's defaults beside all others, or the rate of "
            "false alarms and the power."
        ),
    ] = Which.PAPER,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the paper's datasets (default: two built-in samples). With beyond "
            "and alarms: folder with natural/, Parquet files of streams."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results (default experiment, experiment-alarms, ...)."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="The paper's grid: nine drifts, up to 100,000 rows. With beyond: five seeds, from "
            "100 on. With alarms: ten repetitions, from seed 1000 on.",
        ),
    ] = False,
    river: Annotated[
        bool, typer.Option("--river", help="With beyond: river's KMeans, too, which takes minutes.")
    ] = False,
    clusters: Annotated[
        list[int] | None, typer.Option(help="K; may be given again (default 5, 10, 25).", min=1)
    ] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Size of the drifts; may be given again.")
    ] = None,
    m: Annotated[
        list[float] | None,
        typer.Option(help="A drift is forgotten in 1/m of the time to the next (default 2)."),
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(help="Runs of each setting, or seeds of each stream (default 1).", min=1),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random choices (default 0).", min=0)
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes (default all cores); never changes a byte.", min=1)
    ] = None,
) -> None:
    """Run the paper's experiments, those beyond it, or alarms; a stopped run goes on where it was.

    Example: kmeander experiment --data datasets --out results
    """
    from kmeander.arguments import thread_count
    from kmeander.experiments.grid import FULL, QUICK, SHORTER

    folder = out or Path(f"experiment{'' if which is Which.PAPER else f'-{which}'}{'-full' * full}")
    n_processes = processes or thread_count(None)
    if which is Which.ALARMS:
        given = {"river": river, "clusters": clusters, "epsilon": epsilon, "m": m}
        _refuse([name for name, value in given.items() if value])
        _run_alarms(data, folder, n_processes, full=full, repetitions=repetitions, seed=seed)
        return
    beyond = which is Which.BEYOND
    if river and not beyond:
        raise typer.BadParameter(
            "only 'kmeander experiment beyond' takes it.", param_hint="--river"
        )
    grid = FULL if full else SHORTER if beyond else QUICK
    grid = replace(
        grid,
        n_clusters=tuple(sorted(set(clusters))) if clusters else grid.n_clusters,
        epsilons=tuple(sorted(set(epsilon))) if epsilon else grid.epsilons,
        ms=tuple(sorted(set(m))) if m else grid.ms,
        repetitions=repetitions or 1,
        seed=seed or 0,
    )
    found, missing = _datasets(data, grid)
    if beyond:
        others = _other_streams(data, full=full, repetitions=repetitions, seed=seed, river=river)
        _run_beyond(found, missing, grid, others, folder, n_processes)
    else:
        _run_paper(found, missing, grid, folder, n_processes)


def _refuse(names: Sequence[str]) -> None:
    if names:
        raise typer.BadParameter(
            "'kmeander experiment alarms' does not take it: its streams are its own.",
            param_hint=f"--{names[0]}",
        )


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _datasets(data: Path | None, grid: Grid) -> tuple[list[LoadedDataset], list[MissingDataset]]:
    """Load what there is and say what there is not."""
    from kmeander.experiments.datasets import load_datasets
    from kmeander.experiments.sample import sample_datasets

    found, missing = (sample_datasets(), []) if data is None else load_datasets(data, grid.max_rows)
    for dataset in found:
        _say(f"{dataset.key}: {dataset.note}.")
    for absent in missing:
        _say(f"{absent}")
    if not found:
        raise KmeanderError(
            f"{data} holds none of the paper's datasets. Download at least one of those named "
            "above, or leave out --data to use the built-in samples."
        )
    return found, missing


def _run_paper(
    found: list[LoadedDataset], missing: list[MissingDataset], grid: Grid, out: Path, processes: int
) -> None:
    with _needing_matplotlib():
        from kmeander.experiments.experiment import run_experiment

    n_cells = len(grid.cells(dataset.key for dataset in found))
    with _counted(n_cells) as tell:
        page = run_experiment(found, missing, grid, out, processes=processes, tell=tell)
    _say_verdict(page, "claims hold")
    _say(f"See {page} and {out / 'figures'}.")


def _other_streams(
    data: Path | None, *, full: bool, repetitions: int | None, seed: int | None, river: bool
) -> Plan:
    from kmeander.experiments.beyond.other_streams.plan import DEVELOPING, REPORTING, Plan

    usual = REPORTING if full else DEVELOPING
    first = usual[0] if seed is None else seed
    plan = Plan.of_folder(data, range(first, first + (repetitions or len(usual))), river=river)
    for name, stream in plan.streams.items():
        rows, columns = stream.points.shape
        _say(f"{name}: {rows:,} rows x {columns} columns, in their order.")
    return plan


def _run_beyond(
    found: list[LoadedDataset],
    missing: list[MissingDataset],
    grid: Grid,
    others: Plan,
    out: Path,
    processes: int,
) -> None:
    with _needing_matplotlib():
        from kmeander.experiments.beyond import experiment as beyond

    beyond.check(grid, river=others.river)
    if not others.river:
        _say("river KMeans is left out; --river lets it take part.")
    n_cells = len(beyond.all_cells(found, grid, others))
    with _counted(n_cells) as tell:
        page = beyond.run_beyond(found, missing, grid, others, out, processes=processes, tell=tell)
    for goal in beyond.goals_of(beyond.numbers_in(out)):
        _say(f"{goal.verdict}: {goal.says}: {goal.measured}.")
    _say_verdict(page, "goals met")
    _say(f"See {page} and {out / 'figures'}.")


def _run_alarms(
    data: Path | None,
    out: Path,
    processes: int,
    *,
    full: bool,
    repetitions: int | None,
    seed: int | None,
) -> None:
    with _needing_matplotlib():
        from kmeander.experiments.alarms import experiment as alarms
    from kmeander.experiments.alarms.cells import Length
    from kmeander.experiments.alarms.pools import load_pools
    from kmeander.experiments.alarms.rivals import has_river

    natural = {} if data is None else load_pools(data)
    for name, pool in natural.items():
        _say(f"{name}: {len(pool):,} rows x {pool.shape[1]} columns.")
    if not has_river():
        _say("ADWIN is left out; pip install river lets it take part.")
    default_seed = alarms.FIRST_SEED_FULL if full else alarms.FIRST_SEED
    length = Length(
        repetitions=repetitions or (alarms.FULL if full else alarms.SHORT),
        seed=default_seed if seed is None else seed,
    )
    with _counted(alarms.n_cells(length, natural)) as tell:
        page = alarms.run_alarms(length, out, natural, processes=processes, tell=tell)
    for verdict in alarms.verdicts_in(out):
        kept = "kept" if verdict.is_kept else "not kept"
        _say(f"{kept}: {verdict.promise}: {verdict.measured} (asked: {verdict.asked}).")
    _say_verdict(page, "promises kept")
    _say(f"See {page} and {out / 'figures'}.")


@contextmanager
def _needing_matplotlib() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise KmeanderError(
            f"the figures need {error.name}: pip install 'kmeander[experiments]'"
        ) from error


@contextmanager
def _counted(n_cells: int) -> Iterator[Callable[[CellDone], None]]:
    """Show progress, and how long it all took in the end."""
    started = perf_counter()
    n_computed = 0

    def count(progress: CellDone) -> None:
        nonlocal n_computed
        n_computed += progress.seconds is not None
        show(progress)

    with ExitStack() as stack:
        show = _progress(n_cells, stack)
        yield count
    seconds = perf_counter() - started
    there = f" ({n_cells - n_computed} were there)" if n_computed < n_cells else ""
    pace = f", {60 * n_computed / seconds:.0f} cells per minute" if n_computed else ""
    _say(f"{n_computed} cells computed{there}; {seconds:.0f} s in all{pace}.")


def _say_verdict(page: Path, words: str) -> None:
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("**") and words in line:
            _say(line.replace("**", ""))


def _progress(n_cells: int, stack: ExitStack) -> Callable[[CellDone], None]:
    """Return what shows progress on stderr: a bar on a terminal, otherwise a line per cell."""
    if not sys.stderr.isatty():
        done = iter(range(1, n_cells + 1))

        def line(progress: CellDone) -> None:
            took = "found" if progress.seconds is None else f"{progress.seconds:.1f} s"
            _say(f"[{next(done)}/{n_cells}] {progress.cell.name}: {took}")

        return line
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("cells"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
        console=Console(stderr=True),
        transient=True,
    )
    stack.enter_context(bar)
    task = bar.add_task("cells", total=n_cells, last="")

    def advance(progress: CellDone) -> None:
        bar.update(task, advance=1, last=progress.cell.name)

    return advance
