"""FSKM and PSKM, the algorithms of the paper: one batch in, one Step out."""

from kmeander.models.fskm import FSKM, PSKM

__all__ = ["FSKM", "PSKM"]
