"""The hungarian and the weighted initialisation of the paper, as functions."""

from kmeander.kmeans.starts import hungarian, weighted

__all__ = ["hungarian", "weighted"]
