"""The table: one row a kind of fault."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HEADING = ("fault", "trials", "lost", "duplicated", "wrong")


@dataclass(frozen=True)
class Row:
    """What became of one kind of fault.

    Parameters
    ----------
    fault : str
        What was done, and to what; no two rows of the table have the same.
    trials : int
        How often it was done.
    lost, duplicated : int
        Rows of streams that an output lacks, or has more than once, over all trials.
    wrong : int
        Trials that ended otherwise than they should: other bytes than those of an undisturbed
        run, a traceback, a run that cannot go on.

    Examples
    --------
    >>> print(as_markdown([Row("kill -9", 1200)]))
    | fault | trials | lost | duplicated | wrong |
    |---|---:|---:|---:|---:|
    | kill -9 | 1,200 | 0 | 0 | 0 |
    """

    fault: str
    trials: int
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0

    @property
    def is_bad(self) -> bool:
        """Whether anything was not as it should be, or nothing was tried."""
        return not self.trials or bool(self.lost or self.duplicated or self.wrong)

    def as_line(self) -> str:
        """Return the row as Markdown."""
        counts = (self.trials, self.lost, self.duplicated, self.wrong)
        return f"| {self.fault} | {' | '.join(f'{count:,}' for count in counts)} |"


def as_markdown(rows: Iterable[Row]) -> str:
    """Return the whole table."""
    heading = [f"| {' | '.join(HEADING)} |", "|---|" + "---:|" * (len(HEADING) - 1)]
    return "\n".join([*heading, *(row.as_line() for row in rows)])


def written_into(page: str, rows: Iterable[Row]) -> str:
    """Return a page with the rows in its table: in place of those of the same fault, or below."""
    lines = page.splitlines()
    begin = lines.index(f"| {' | '.join(HEADING)} |") + 2
    end = next((i for i in range(begin, len(lines)) if not lines[i].startswith("|")), len(lines))
    known = {line.split("|")[1].strip(): line for line in lines[begin:end]}
    known |= {row.fault: row.as_line() for row in rows}
    return "\n".join([*lines[:begin], *known.values(), *lines[end:]]) + "\n"
