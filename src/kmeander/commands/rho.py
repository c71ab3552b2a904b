"""``kmeander rho``: which rho to take, and what it means."""

from __future__ import annotations

import math
from typing import Annotated

import typer


def rho(
    half_life: Annotated[
        float | None, typer.Option(help="Batches after which half is forgotten.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The error grows by this share at a drift; with --stable-for."),
    ] = None,
    stable_for: Annotated[
        float | None, typer.Option(help="Batches between two drifts, on average.")
    ] = None,
    m: Annotated[
        float, typer.Option(help="A drift is forgotten in 1/m of the time to the next.")
    ] = 2.0,
    rho: Annotated[float | None, typer.Option(help="Explain this one.")] = None,
) -> None:
    """Choose rho from a half-life or by the paper's heuristic, and explain it.

    Example: kmeander rho --epsilon 0.5 --stable-for 20
    """
    from kmeander.kmeans.forgetting import max_batches_for, rho_after_half, rho_for_drift

    ways = [half_life is not None, epsilon is not None or stable_for is not None, rho is not None]
    if sum(ways) != 1:
        raise typer.BadParameter(
            "give --half-life, or --epsilon with --stable-for, or --rho: one of the three"
        )
    if (epsilon is None) != (stable_for is None):
        raise typer.BadParameter("--epsilon and --stable-for go together")
    if half_life is not None:
        chosen = rho_after_half(half_life, "half_life")
        why = f"half of a batch is forgotten after {half_life:g} batches"
    elif epsilon is not None and stable_for is not None:
        chosen = rho_for_drift(epsilon, stable_for, m)
        why = (
            f"a drift of epsilon {epsilon:g} counts for less than 1 % after {stable_for / m:g} "
            f"batches, 1/{m:g} of the {stable_for:g} to the next"
        )
    else:
        assert rho is not None
        chosen = rho
        why = "as given"
    n_batches = max_batches_for(chosen)
    print(f"rho            {chosen:.6g}   ({why})")
    print(f"half-life      {math.log(0.5) / math.log(chosen):.4g} batches")
    print(f"remembered     {n_batches} batches, until one weighs 1 % of the newest or less")
    total = sum(chosen**age for age in range(n_batches))
    print(f"worth          {total:.4g} batches of full weight")
    print("\n  age   weight   share of all")
    for age in _ages(n_batches):
        weight = chosen**age
        bar = "█" * round(40 * weight)
        print(f"{age:>5}   {weight:6.1%}   {weight / total:6.1%}  {bar}")
    print(f"\nkmeander run SOURCE --rho {chosen:.6g}")


def _ages(n_batches: int) -> list[int]:
    """Return ages to show: all of a few, some of many."""
    if n_batches <= 16:
        return list(range(n_batches))
    step = (n_batches - 1) / 15
    return sorted({round(index * step) for index in range(16)})
