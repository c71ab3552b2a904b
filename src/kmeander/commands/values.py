"""Values that options take, and what the words that are given for them mean."""

from __future__ import annotations

import csv
from typing import NoReturn

import typer

# How --help shows the words that an option takes; the library refuses others. A test compares them.
INIT = "hungarian|weighted|current|previous"
FORGETTING = "adaptive|on-trial|fixed"
FORMAT = "csv|tsv|ndjson|json|parquet|arrow"
ORDER = "name|time"
LATE = "keep|skip|error"
LOG = "text|json"
START = "earliest|latest"
METRIC = "euclidean|cosine"
TIME_UNIT = "s|ms|us|ns"


def clusters_of(text: str) -> int | tuple[int, int] | str:
    """Return what --clusters means.

    Examples
    --------
    >>> clusters_of("8"), clusters_of("2-30"), clusters_of("auto")
    (8, (2, 30), 'auto')
    """
    low, _, high = text.partition("-")
    if low.strip().isdecimal() and high.strip().isdecimal():
        return int(low), int(high)
    try:
        return int(text)
    except ValueError:
        if text != "auto":
            raise typer.BadParameter(
                f"--clusters must be a number, two with a dash between such as 2-30, or auto, got "
                f"{text!r}"
            ) from None
        return text


def fewest_clusters(text: str) -> int:
    """Return how many clusters a stream has at least under --clusters."""
    from kmeander.models.cluster_range import checked_count

    return checked_count(clusters_of(text))[1].low


def rho_of(text: str) -> float | str:
    """Return what --rho means."""
    from kmeander.arguments import share_kept

    try:
        rho = float(text)
    except ValueError:
        return text  # auto, two-speed, or a word that the library refuses
    # A share of 1 would need max_batches, which has no option.
    return share_kept(rho, below_one=True)


def refine_of(text: str) -> str | int | None:
    """Return what --refine means."""
    if text == "none":
        return None
    if text in ("swaps", "split-merge"):
        return text
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"--refine must be swaps, split-merge, none or a number of swaps to try of at least 1, got "
        f"{text!r}"
    )


def no_longer_standardize(_: bool) -> NoReturn:
    """Say what to write instead of an option that there was."""
    raise typer.BadParameter(
        "--standardize is gone: write --prepare auto, or --prepare rules.toml with "
        'scale = "standard" in that file'
    )


def names(text: str) -> list[str]:
    """Return names that were given with commas between, as a line of CSV.

    Examples
    --------
    >>> names('a, "b,c"')
    ['a', 'b,c']
    """
    fields = next(csv.reader([text], skipinitialspace=True), [])
    found = [name.strip() for name in fields if name.strip()]
    if not found:
        raise typer.BadParameter(
            f"{text!r} names no column. Give names with commas between, or leave the option out"
        )
    return found


def kinds_of(given: list[str]) -> list[str]:
    """Return kinds of events that were given with commas between, or one by one.

    Examples
    --------
    >>> kinds_of(["drift,died", "moved"])
    ['drift', 'died', 'moved']
    """
    from kmeander.events import KINDS

    kinds = [kind for text in given for kind in names(text)]
    unknown = next((kind for kind in kinds if kind not in KINDS), None)
    if unknown is not None:
        raise typer.BadParameter(f"{unknown!r} is no kind of event: there are {', '.join(KINDS)}")
    return kinds


def refuse_listed_secrets(context: typer.Context, given: list[str] | None) -> list[str] | None:
    """Refuse passwords on the command line, which all who list processes can see."""
    from kmeander.wire.kafka_settings import is_secret

    source = context.get_parameter_source("kafka_options")
    if source is None or source.name != "COMMANDLINE":
        return given
    for text in given or ():
        key = text.partition("=")[0]
        if is_secret(key):
            raise typer.BadParameter(
                f"--kafka-option {key} would show its value to all who list processes. Write it in "
                "a file, and name that with --kafka-config"
            )
    return given


def pairs(given: list[str]) -> dict[str, str]:
    """Return settings that were given as KEY=VALUE."""
    settings = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"--kafka-option must be KEY=VALUE, got {text!r}")
        settings[key] = value
    return settings
