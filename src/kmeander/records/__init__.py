"""The records that travel: a Batch goes into a model, a Step comes out. All are frozen."""

from kmeander.records.batch import Batch, Times
from kmeander.records.noise import Noise
from kmeander.records.step import Ids, Step

__all__ = ["Batch", "Ids", "Noise", "Step", "Times"]
