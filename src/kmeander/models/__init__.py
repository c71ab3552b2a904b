"""FSKM and PSKM, the algorithms of the paper: one batch in, one Step out."""

from kmeander.models.fskm import FSKM
from kmeander.models.pskm import PSKM

__all__ = ["FSKM", "PSKM"]
