"""Streams of rows: files in many formats, standard input, Python objects, Kafka.

Every source keeps one small contract (`block.Source`): the next rows, where they stand, and going
on from there. `batching` cuts what they yield into batches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from kmeander.arguments import one_of
from kmeander.drifts.concepts import DriftStream
from kmeander.exceptions import InputError, argument
from kmeander.sources.block import Source
from kmeander.sources.files import FORMATS, ORDERS, FileSource
from kmeander.sources.iterables import IterableSource, is_table
from kmeander.sources.kafka import KafkaSource
from kmeander.sources.reading import Reading
from kmeander.sources.selection import Wanted
from kmeander.sources.simulated import PREFIX, SimulatedSource, open_drift
from kmeander.wire.kafka import SCHEME

__all__ = ["FileSource", "Reading", "Source", "Wanted", "is_table", "open_source"]


def open_source(
    source: Any,
    wanted: Wanted,
    reading: Reading,
    *,
    group: str = "kmeander",
    start: str = "earliest",
    kafka_options: Mapping[str, str] | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Source:
    """Return the source that `source` means; see `kmeander.run`."""
    one_of("order", reading.order, ORDERS)
    is_named = isinstance(source, str | os.PathLike)
    if reading.follow and (not is_named or os.fspath(source).startswith((SCHEME, PREFIX))):
        raise InputError(
            f"{argument('follow', True)} is for files: other streams are read as they come anyway."
        )
    if is_named:
        text = os.fspath(source)
        if text.startswith(SCHEME):
            return KafkaSource(
                text,
                wanted,
                reading=reading,
                group=group,
                start=start,
                options=kafka_options,
                notify=notify,
            )
        if reading.form is not None:
            one_of("format", reading.form, FORMATS)
        if text.startswith(PREFIX):
            return open_drift(text, wanted)
        return FileSource(text, wanted, reading, notify)
    if isinstance(source, DriftStream):
        return SimulatedSource(source, wanted)
    return IterableSource(source, wanted)
