"""Write the stored miniature grid again: ``python -m tests.golden.make_grid``."""

import csv
from dataclasses import asdict

from tests import golden
from tests.experiments.test_protocol import tiny_grid

if __name__ == "__main__":
    rows = [asdict(record) for record in tiny_grid()]
    with golden.GRID.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
