"""``python -m faults [KIND ...] [--quick] [--write]``: try every kind of fault, show the table."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from faults import KINDS
from faults.table import Row, as_markdown, written_into

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"


def main() -> int:
    """Try the kinds that were asked for; exit with 1 where anything was not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--quick", action="store_true", help="few trials of each")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.name}")
    asked = parser.parse_args()
    unknown = sorted(set(asked.kinds) - set(KINDS))
    if unknown:
        parser.error(f"there is no kind {unknown[0]}; use {', '.join(KINDS)}")
    rows: list[Row] = []
    for kind in asked.kinds or KINDS:
        for row in importlib.import_module(f"faults.{kind}").rows(asked.quick):
            print(row.as_line(), file=sys.stderr, flush=True)
            rows.append(row)
            if asked.write:  # at once: what was tried for hours is not lost
                page = written_into(PAGE.read_text(encoding="utf-8"), [row])
                PAGE.write_text(page, encoding="utf-8")
    print(as_markdown(rows))
    return int(any(row.is_bad for row in rows))


if __name__ == "__main__":
    sys.exit(main())
