"""The drift simulator as a source."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl

from kmeander.arguments import positive_number, whole_number
from kmeander.drifts.concepts import DriftStream, simulate_drifts
from kmeander.exceptions import InputError
from kmeander.sources.block import Block, Position, Source
from kmeander.sources.columnar_files import table_block
from kmeander.sources.conversion import to_block
from kmeander.sources.files import read_file
from kmeander.sources.selection import Selection, Wanted
from kmeander.wire.arrow import to_batch

PREFIX = "drift:"
# What may follow the file, and what it is otherwise.
_DEFAULTS = {
    "clusters": 10,
    "epsilon": 1.0,
    "concepts": 10,
    "batch_size": 500,
    "batches_per_concept": 10,
    "seed": 0,
}
_MEANINGS = {
    "clusters": "the number of clusters that move",
    "concepts": "the number of concepts, the file included",
    "batch_size": "the rows of a batch",
    "batches_per_concept": "the number of batches drawn from each concept",
    "seed": "the seed of all random choices",
}


class SimulatedSource(Source):
    """The batches of a `DriftStream`; any of them can be made anew, so nothing is skipped."""

    def __init__(self, stream: DriftStream, wanted: Wanted, names: list[str] | None = None) -> None:
        super().__init__(f"a simulated stream of {len(stream)} batches")
        self._stream = stream
        self._names = names or [f"x{i}" for i in range(stream.concepts[0].shape[1])]
        self._selection = wanted.among(self._names, self.name)

    @property
    def selection(self) -> Selection:
        """The columns that are read."""
        return self._selection

    def blocks(self, position: Position | None = None) -> Iterator[Block | None]:
        """Yield one block per batch."""
        skip = 0 if position is None else position["row"]
        n_seen = 0
        for index in range(len(self._stream)):
            if n_seen + self._stream.batch_size > skip:
                points = self._stream.batch(index)
                table = to_batch({name: points[:, i] for i, name in enumerate(self._names)})
                begin = max(0, skip - n_seen)
                raw = table_block(table.slice(begin), self.name, 0, n_seen + begin)
                yield to_block(raw, self._selection)
            n_seen += self._stream.batch_size


def _check(place: str, name: str, value: float) -> None:
    """Refuse a setting by the name that it has in the address, not by that of an option."""
    if name == "epsilon":
        positive_number(place, value)
    else:
        whole_number(place, value, at_least=0 if name == "seed" else 1, meaning=_MEANINGS[name])


def open_drift(address: str, wanted: Wanted) -> SimulatedSource:
    """Return the stream that ``drift:FILE?epsilon=0.5&concepts=4`` describes.

    Its first concept is the file; the others are made by `simulate_drifts`.
    """
    path, _, query = address.removeprefix(PREFIX).partition("?")
    if not path:
        raise InputError(f"{address!r} names no file. Write drift:FILE?epsilon=0.5.")
    settings = dict(_DEFAULTS)
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in settings:
            raise InputError(f"{address}: there is no {name!r}. Use {', '.join(_DEFAULTS)}.")
        try:
            settings[name] = type(_DEFAULTS[name])(value)
        except ValueError as error:
            kind = "number" if name == "epsilon" else "whole number"
            raise InputError(f"{address}: {name} must be a {kind}, got {value!r}.") from error
        _check(f"{address}: {name}", name, settings[name])
    names, points = read_file(path, wanted.columns)
    seed = int(settings["seed"])
    concepts = simulate_drifts(
        points,
        int(settings["clusters"]),
        float(settings["epsilon"]),
        int(settings["concepts"]),
        random_state=seed,
    )
    stream = DriftStream(
        concepts,
        int(settings["batch_size"]),
        int(settings["batches_per_concept"]),
        random_state=seed,
    )
    return SimulatedSource(stream, wanted, names)
