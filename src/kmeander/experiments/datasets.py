"""The eight datasets of the paper, found in a folder, checked, and reduced to their features."""

from __future__ import annotations

import itertools
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kmeander.arrays import Points
from kmeander.exceptions import InputError
from kmeander.experiments import readers
from kmeander.experiments.readers import DataFile, Reader


@dataclass(frozen=True)
class Dataset:
    """One dataset of the UCI Machine Learning Repository, as published.

    Parameters
    ----------
    key : str
        Its name in this project's files.
    title, uci, citation
        Where it comes from; `uci` is its number in the repository.
    n_rows : int or None
        Rows as published; None where the repository does not say exactly.
    n_columns : tuple of int
        Features: those the paper used first, then what else is accepted.
    published : str
        Pattern of the published files' names, whatever archive they are in.
    n_files : int
        How many there are.
    read : callable
        Reads one of them.
    parquet : str
        Pattern of the name of a Parquet copy: all its columns but `label` are features.
    dropped : tuple of int
        Positions of columns that the authors left out, where a Parquet copy has them.
    """

    key: str
    title: str
    uci: int
    citation: str
    n_rows: int | None
    n_columns: tuple[int, ...]
    published: str
    n_files: int
    read: Reader
    parquet: str
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class LoadedDataset:
    """A dataset that is there.

    `note` says where it comes from and what of it was taken.
    """

    key: str
    title: str
    points: Points
    note: str


@dataclass(frozen=True)
class MissingDataset:
    """A dataset that is not."""

    dataset: Dataset

    def __str__(self) -> str:
        known = self.dataset
        return f"{known.key}: not found, skipped. {known.title} (UCI {known.uci}; {known.citation})"


_HANDS = [part + axis for part in ("lh", "rh", "h", "s", "lw", "rw") for axis in "xyz"]
_GAS = [
    "CO (ppm)", "Humidity (%r.h.)", "Temperature (C)", "Flow rate (mL/min)", "Heater voltage (V)",
    *(f"R{i} (MOhm)" for i in range(1, 15)),
]  # fmt: skip

# In the order of the paper's table. Of SUSY, 8 columns are the detector's own measurements; of
# the gestures, 18 are the raw positions and 50 those with velocities and accelerations.
DATASETS = (
    Dataset(
        key="urban",
        title="UrbanGB, urban road accidents coordinates labelled by the urban center",
        uci=550,
        citation="C. Baldassi, 2019",
        n_rows=360_177,
        n_columns=(2,),
        published=r"urbanGB\.txt",
        n_files=1,
        read=readers.without_header(2),
        parquet=r"urban.*\.parquet",
    ),
    Dataset(
        key="pulsar",
        title="HTRU2",
        uci=372,
        citation="R. J. Lyon et al., MNRAS 459, 2016",
        n_rows=17_898,
        n_columns=(8,),
        published=r"HTRU_2\.csv",
        n_files=1,
        read=readers.without_header(9, skipped=[8]),
        parquet=r"(htru|pulsar).*\.parquet",
    ),
    Dataset(
        key="susy",
        title="SUSY",
        uci=279,
        citation="P. Baldi, P. Sadowski, D. Whiteson, Nature Communications 5, 2014",
        n_rows=5_000_000,
        n_columns=(18, 8),
        published=r"SUSY\.csv(\.gz)?",
        n_files=1,
        read=readers.without_header(19, skipped=[0]),
        parquet=r"susy.*\.parquet",
    ),
    Dataset(
        key="gas",
        title="Gas sensor array temperature modulation",
        uci=487,
        citation="J. Burgués, S. Marco, 2018-2019",
        n_rows=None,
        n_columns=(19,),
        published=r"20\d{6}_\d{6}\.csv",
        n_files=13,
        read=readers.with_header(_GAS),
        parquet=r"gas.*\.parquet",
        dropped=(0,),
    ),
    Dataset(
        key="frogs",
        title="Anuran Calls (MFCCs)",
        uci=406,
        citation="J. Colonna, E. Nakamura, M. Cristo, M. Gordo, 2017",
        n_rows=7_195,
        n_columns=(21,),
        published=r"Frogs_MFCCs\.csv",
        n_files=1,
        read=readers.with_header([f"MFCCs_{i}" for i in range(2, 23)]),
        parquet=r"(anuran|frogs).*\.parquet",
        dropped=(0,),
    ),
    Dataset(
        key="google",
        title="Travel Review Ratings (Google reviews)",
        uci=485,
        citation="S. Renjith, A. Sreekumar, M. Jathavedan, 2018",
        n_rows=5_456,
        n_columns=(24,),
        published=r"google_review_ratings\.csv",
        n_files=1,
        read=readers.google_ratings,
        parquet=r"google.*\.parquet",
    ),
    Dataset(
        key="gesture",
        title="Gesture Phase Segmentation",
        uci=302,
        citation="R. Madeo, P. Wagner, S. Peres, 2013-2014",
        n_rows=9_901,
        n_columns=(18, 50),
        published=r"[abc][123]_raw\.csv",
        n_files=7,
        read=readers.with_header(_HANDS),
        parquet=r"gesture.*\.parquet",
    ),
    Dataset(
        key="epilepsy",
        title="Epileptic Seizure Recognition",
        uci=388,
        citation="Q. Wu, E. Fokoue, 2017; R. Andrzejak et al., Phys. Rev. E 64, 2001",
        n_rows=11_500,
        n_columns=(178,),
        published=r"(data|Epileptic Seizure Recognition)\.csv",
        n_files=1,
        read=readers.with_header([f"X{i}" for i in range(1, 179)]),
        parquet=r"epilep.*\.parquet",
    ),
)


def load_datasets(
    folder: Path, max_rows: int = 100_000
) -> tuple[list[LoadedDataset], list[MissingDataset]]:
    """Load every dataset of the paper that `folder` holds; name the others."""
    files = readers.files_in(folder)
    loaded = [load_dataset(dataset, files, max_rows) for dataset in DATASETS]
    return (
        [entry for entry in loaded if isinstance(entry, LoadedDataset)],
        [entry for entry in loaded if isinstance(entry, MissingDataset)],
    )


def load_dataset(
    dataset: Dataset, files: list[DataFile], max_rows: int
) -> LoadedDataset | MissingDataset:
    """Load one dataset from among `files`, the published form first.

    A published file must be complete. A Parquet copy may hold fewer rows: it cannot be read when
    it is cut off, so that was somebody's choice, and the note says it.
    """
    published = _named(files, dataset.published)
    if published:
        return _load_published(dataset, published, max_rows)
    copies = _named(files, dataset.parquet)
    return _load_parquet(dataset, copies, max_rows) if copies else MissingDataset(dataset)


def _load_published(dataset: Dataset, files: list[DataFile], max_rows: int) -> LoadedDataset:
    # The same file may lie there twice, as such and in its archive: the first counts.
    chosen = [next(same) for _, same in itertools.groupby(files, key=lambda file: file.name)]
    chosen = chosen[:1] if dataset.n_files == 1 else chosen
    if len(chosen) != dataset.n_files:
        raise InputError(
            f"{dataset.key}: {len(chosen)} of its {dataset.n_files} files are there, the first is "
            f"{chosen[0]}. Add the others or remove these."
        )
    blocks = itertools.chain.from_iterable(map(dataset.read, chosen))
    found = readers.sampled(blocks, max_rows, _generator(dataset))
    if found is None:
        raise InputError(f"{chosen[0]} has no rows. Download it again.")
    if dataset.n_rows not in (None, found.n_rows):
        raise InputError(
            f"{chosen[0]} has {found.n_rows:,} rows, {dataset.title} as published has "
            f"{dataset.n_rows:,}. It may be cut off: download it again."
        )
    return LoadedDataset(dataset.key, dataset.title, found.points, _note(dataset, found, chosen[0]))


def _load_parquet(dataset: Dataset, copies: list[DataFile], max_rows: int) -> LoadedDataset:
    sizes = {file: readers.parquet_columns(file) for file in copies}
    usable = [file for file in copies if _features(dataset, sizes[file][1]) is not None]
    if not usable:
        n_rows, names = sizes[copies[0]]
        accepted = " or ".join(map(str, dataset.n_columns))
        raise InputError(
            f"{copies[0]} has {len(names)} columns besides 'label' and {n_rows:,} rows; "
            f"{dataset.title} has {accepted} features. Check which file it is."
        )
    # Of several, the one that holds most.
    chosen = max(usable, key=lambda file: sizes[file][0])
    features = _features(dataset, sizes[chosen][1])
    assert features is not None
    blocks = readers.parquet(features)(chosen)
    found = readers.sampled(blocks, max_rows, _generator(dataset))
    if found is None:
        raise InputError(f"{chosen} has no rows.")
    return LoadedDataset(dataset.key, dataset.title, found.points, _note(dataset, found, chosen))


def _named(files: list[DataFile], pattern: str) -> list[DataFile]:
    matching = [file for file in files if re.fullmatch(pattern, file.name, re.IGNORECASE)]
    return sorted(matching, key=lambda file: (file.name, file.member is not None, str(file.path)))


def _features(dataset: Dataset, names: list[str]) -> list[str] | None:
    """Return the columns to take, or None where their number fits no accepted form."""
    if len(names) in dataset.n_columns:
        return names
    fewer = [name for i, name in enumerate(names) if i not in dataset.dropped]
    return fewer if len(fewer) == dataset.n_columns[0] else None


def _generator(dataset: Dataset) -> np.random.Generator:
    # Part of the data, not of a run: every run sees the same rows.
    return np.random.default_rng(zlib.crc32(dataset.key.encode()))


def _note(dataset: Dataset, found: readers.Sampled, file: DataFile) -> str:
    n_rows, n_columns = found.points.shape
    words = [f"{n_rows:,} rows x {n_columns} columns from {file.name}"]
    if n_rows < found.n_rows:
        words.append(f"sampled from {found.n_rows:,} rows")
    if dataset.n_rows is not None and found.n_rows < dataset.n_rows:
        words.append(f"a subset: {dataset.n_rows:,} rows are published")
    if n_columns != dataset.n_columns[0]:
        words.append(f"the paper used {dataset.n_columns[0]} columns")
    return "; ".join(words)
