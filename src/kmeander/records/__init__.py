"""The records that travel: a Batch goes into a model, a Step comes out. All are frozen."""

from kmeander.records.batch import Batch, Times
from kmeander.records.captions import Captions
from kmeander.records.columns import Columns
from kmeander.records.noise import Noise
from kmeander.records.profile import ClusterProfile, Contrast, ExampleRow, Profiles
from kmeander.records.step import Ids, Step

__all__ = [
    "Batch",
    "Captions",
    "ClusterProfile",
    "Columns",
    "Contrast",
    "ExampleRow",
    "Ids",
    "Noise",
    "Profiles",
    "Step",
    "Times",
]
