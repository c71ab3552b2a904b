"""Rows as people have them, as points: one scale, nothing missing, categories as numbers."""

from kmeander.preparation.fitted import FittedPreparation, Prepared
from kmeander.preparation.matching import joined
from kmeander.preparation.plan import ColumnPlan
from kmeander.preparation.rows import Column, Rows
from kmeander.preparation.rules import Preparation, preparation_of
from kmeander.preparation.tables import rows_of, rows_of_arrow

__all__ = [
    "Column",
    "ColumnPlan",
    "FittedPreparation",
    "Preparation",
    "Prepared",
    "Rows",
    "joined",
    "preparation_of",
    "rows_of",
    "rows_of_arrow",
]
