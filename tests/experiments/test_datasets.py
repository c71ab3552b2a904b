"""The eight datasets in each published form, and files that are not what they should be."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from kmeander import InputError
from kmeander.experiments.datasets import (
    DATASETS,
    Dataset,
    LoadedDataset,
    MissingDataset,
    load_dataset,
    load_datasets,
)
from kmeander.experiments.readers import files_in, sampled
from kmeander.experiments.sample import sample_datasets
from tests.program import kmeander

KEYS = ["urban", "pulsar", "susy", "gas", "frogs", "google", "gesture", "epilepsy"]
N_ROWS = 12
Table = NDArray[np.float64]


def spec(key: str, n_rows: int = N_ROWS) -> Dataset:
    """The dataset, as if so many rows had been published."""
    (dataset,) = (d for d in DATASETS if d.key == key)
    return replace(dataset, n_rows=None if dataset.n_rows is None else n_rows)


def numbers(n_columns: int, n_rows: int = N_ROWS) -> Table:
    return np.random.default_rng(n_columns).normal(size=(n_rows, n_columns)).round(4)


def lines(rows: Table, header: str = "", before: str = "", after: str = "") -> str:
    body = "".join(before + ",".join(map(str, row)) + after + "\n" for row in rows.tolist())
    return (header + "\n" if header else "") + body


def urban(folder: Path) -> Table:
    rows = numbers(2)
    (folder / "urbanGB.txt").write_text(lines(rows))
    (folder / "urbanGB.labels.txt").write_text("1\n" * N_ROWS)
    return rows


def pulsar(folder: Path) -> Table:
    rows = numbers(8)
    (folder / "HTRU_2.csv").write_text(lines(rows, after=",0"))
    return rows


def susy(folder: Path) -> Table:
    rows = numbers(18)
    with gzip.open(folder / "SUSY.csv.gz", "wt") as file:
        file.write(lines(rows, before="1.000000000000000000e+00,"))
    return rows


def gas(folder: Path) -> Table:
    names = ["Time (s)", "CO (ppm)", "Humidity (%r.h.)", "Temperature (C)", "Flow rate (mL/min)",
             "Heater voltage (V)", *(f"R{i} (MOhm)" for i in range(1, 15))]  # fmt: skip
    rows = numbers(20, 13 * 3)
    for day in range(13):
        name = f"201609{day + 10}_203718.csv"
        (folder / name).write_text(lines(rows[3 * day : 3 * day + 3], ",".join(names)))
    return rows[:, 1:]


def frogs(folder: Path) -> Table:
    rows = numbers(22)
    names = [f"MFCCs_{i:2d}" for i in range(1, 23)] + ["Family", "Genus", "Species", "RecordID"]
    (folder / "Frogs_MFCCs.csv").write_text(
        lines(rows, ",".join(names), after=",Hylidae,Hyla,HylaMinuta,1")
    )
    return rows[:, 1:]


def google(folder: Path) -> Table:
    rows = np.abs(numbers(24))
    header = "User," + ",".join(f"Category {i}" for i in range(1, 25)) + ","
    text = lines(rows, header, before="User 1,", after=",").splitlines()
    # As published: one row with an empty field too many, one with a tab for a point.
    text[3] = "User 3," + ",".join(map(str, rows[2, :10])) + ",," + ",".join(map(str, rows[2, 10:]))
    rows[4, 10] = 2.2
    fields = text[5].split(",")
    fields[11] = "2\t2."
    text[5] = ",".join(fields)
    (folder / "google_review_ratings.csv").write_text("\n".join(text) + "\n")
    return rows


def gesture(folder: Path) -> Table:
    rows = numbers(18, 14)
    header = ",".join(part + axis for part in ("lh", "rh", "h", "s", "lw", "rw") for axis in "xyz")
    for i, video in enumerate(("a1", "a2", "a3", "b1", "b3", "c1", "c3")):
        text = lines(rows[2 * i : 2 * i + 2], header + ",timestamp,phase", after=",5.33e6,Rest")
        (folder / f"{video}_raw.csv").write_text(text)
        (folder / f"{video}_va3.csv").write_text("1,2,Phase\n0.1,0.2,D\n")
    return rows


def epilepsy(folder: Path) -> Table:
    rows = numbers(178)
    header = '"",' + ",".join(f'"X{i}"' for i in range(1, 179)) + ',"y"'
    (folder / "data.csv").write_text(lines(rows, header, before='"X21.V1.791",', after=",4"))
    return rows


PUBLISHED: dict[str, Callable[[Path], Table]] = {
    f.__name__: f for f in (urban, pulsar, susy, gas, frogs, google, gesture, epilepsy)
}


def load(key: str, folder: Path, n_rows: int = N_ROWS, max_rows: int = 1000) -> LoadedDataset:
    found = load_dataset(spec(key, n_rows), files_in(folder), max_rows)
    assert isinstance(found, LoadedDataset)
    return found


def test_all_eight_are_known() -> None:
    assert [dataset.key for dataset in DATASETS] == KEYS == list(PUBLISHED)
    assert [dataset.uci for dataset in DATASETS] == [550, 372, 279, 487, 406, 485, 302, 388]
    assert [dataset.n_columns[0] for dataset in DATASETS] == [2, 8, 18, 19, 21, 24, 18, 178]


@pytest.mark.parametrize("key", KEYS)
def test_published_files_are_read_as_such_and_from_zip_archives(key: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.mkdir()
    packed.mkdir()
    expected = PUBLISHED[key](plain)
    found = load(key, plain, len(expected))
    np.testing.assert_array_equal(found.points, expected)
    with zipfile.ZipFile(packed / "download.zip", "w") as archive:
        for path in plain.iterdir():
            archive.write(path, f"some folder/{path.name}")
        archive.writestr("some folder/readme.txt", "hello")
    np.testing.assert_array_equal(load(key, packed, len(expected)).points, expected)
    assert f"{len(expected)} rows x {expected.shape[1]} columns" in found.note


COPIES = {
    "urban": ("urbangb", 2), "pulsar": ("htru2", 8), "susy": ("susy", 18), "gas": ("gas", 20),
    "frogs": ("anuran", 22), "google": ("google_reviews", 24), "gesture": ("gesture_raw", 18),
    "epilepsy": ("epileptic", 178),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_parquet_copies_are_read_without_their_label(key: str, tmp_path: Path) -> None:
    name, n_columns = COPIES[key]
    rows = numbers(n_columns)
    columns = {f"c{i}": rows[:, i] for i in range(n_columns)}
    table = pa.table({**columns, "label": ["x"] * N_ROWS})
    pq.write_table(table, tmp_path / f"{name}.parquet")
    expected = rows[:, 1:] if key in ("frogs", "gas") else rows  # as the authors did
    np.testing.assert_array_equal(load(key, tmp_path).points, expected)


def write_parquet(path: Path, rows: Table, **more: list[str]) -> None:
    pq.write_table(pa.table({**{f"c{i}": rows[:, i] for i in range(rows.shape[1])}, **more}), path)


def test_of_several_parquet_copies_the_largest_that_fits_is_taken(tmp_path: Path) -> None:
    write_parquet(tmp_path / "susy_small.parquet", numbers(18, 5))
    write_parquet(tmp_path / "susy_detector.parquet", numbers(8, 9))
    write_parquet(tmp_path / "susy_odd.parquet", numbers(7, 30))
    found = load("susy", tmp_path, 100)
    assert found.points.shape == (9, 8)
    assert found.note == (
        "9 rows x 8 columns from susy_detector.parquet; a subset: 100 rows are published; "
        "the paper used 18 columns"
    )


def test_large_files_are_sampled_in_their_order(tmp_path: Path) -> None:
    rows = np.arange(2000.0).reshape(1000, 2)
    (tmp_path / "urbanGB.txt").write_text(lines(rows))
    found = load("urban", tmp_path, 1000, max_rows=100)
    assert len(found.points) == 100
    assert (np.diff(found.points[:, 0]) > 0).all()
    assert set(map(tuple, found.points)) <= set(map(tuple, rows))
    assert found.note.endswith("sampled from 1,000 rows")
    np.testing.assert_array_equal(found.points, load("urban", tmp_path, 1000, 100).points)


@pytest.mark.parametrize("size", [7, 100, 1000])
def test_the_size_of_blocks_does_not_change_the_sample(size: int) -> None:
    rows = np.arange(1000.0)[:, np.newaxis]

    def sample(size: int) -> Table:
        blocks = (rows[i : i + size] for i in range(0, 1000, size))
        found = sampled(blocks, 50, np.random.default_rng(0))
        assert found is not None and found.n_rows == 1000
        return found.points

    np.testing.assert_array_equal(sample(size), sample(333))
    assert sampled(iter([]), 50, np.random.default_rng(0)) is None


def broken(key: str, folder: Path, n_rows: int = N_ROWS) -> str:
    with pytest.raises(InputError) as raised:
        load(key, folder, n_rows)
    return str(raised.value)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    frogs(tmp_path)
    path = tmp_path / "Frogs_MFCCs.csv"
    path.write_text(path.read_text().replace("MFCCs_ 7", "MFCC7"))
    assert broken("frogs", tmp_path) == (
        f"{path} has no column 'MFCCs_7'. Its first line names 'MFCCs_ 1', 'MFCCs_ 2', 'MFCCs_ 3', "
        "'MFCCs_ 4', 'MFCCs_ 5', 'MFCCs_ 6', 'MFCC7', 'MFCCs_ 8', ...."
    )


def test_text_in_a_column_of_numbers_is_named(tmp_path: Path) -> None:
    rows = numbers(8)
    path = tmp_path / "HTRU_2.csv"
    path.write_text(lines(rows, after=",0").replace(str(rows[4, 2]), "n/a"))
    assert broken("pulsar", tmp_path) == f"{path}: 'n/a' in column 'column 3' is not a number."
    path.write_text(lines(rows, after=",0").replace(str(rows[4, 2]), ""))
    assert broken("pulsar", tmp_path) == (
        f"{path} row 5: nothing in column 'column 3'. Every value must be present."
    )


def test_a_file_that_was_cut_off_is_noticed(tmp_path: Path) -> None:
    epilepsy(tmp_path)
    path = tmp_path / "data.csv"
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:-2]))
    assert broken("epilepsy", tmp_path) == (
        f"{path} has 10 rows, Epileptic Seizure Recognition as published has 12. It may be cut "
        "off: download it again."
    )
    path.write_text(whole[:-700])
    assert broken("epilepsy", tmp_path).startswith(f"{path} cannot be read as published: ")
    path.write_text(whole.splitlines()[0] + "\n")
    assert broken("epilepsy", tmp_path) == f"{path} has no rows. Download it again."


def test_damaged_archives_are_noticed(tmp_path: Path) -> None:
    susy(tmp_path)
    packed = tmp_path / "SUSY.csv.gz"
    packed.write_bytes(packed.read_bytes()[:-200])
    assert broken("susy", tmp_path).startswith(f"{packed} is damaged or cut off (")
    archive = tmp_path / "download.zip"
    archive.write_bytes(b"PK\x03\x04 not much else")
    assert broken("susy", tmp_path).startswith(f"{archive} is not a whole zip archive (")


def test_google_rows_that_cannot_be_mended_are_named(tmp_path: Path) -> None:
    google(tmp_path)
    path = tmp_path / "google_review_ratings.csv"
    whole = path.read_text()
    path.write_text(whole.rsplit(",", 5)[0] + "\n")
    assert broken("google", tmp_path) == (
        f"{path} line 13 has 20 ratings, 24 are expected. The file is cut off or not the published "
        "one."
    )
    path.write_text(whole.replace("2\t2.", "two"))
    assert broken("google", tmp_path) == (
        f"{path} line 6: could not convert string to float: 'two'."
    )


def test_parts_of_a_dataset_are_not_taken_for_all(tmp_path: Path) -> None:
    gesture(tmp_path)
    (tmp_path / "b1_raw.csv").unlink()
    assert broken("gesture", tmp_path) == (
        f"gesture: 6 of its 7 files are there, the first is {tmp_path / 'a1_raw.csv'}. Add the "
        "others or remove these."
    )


def test_bad_parquet_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "htru2.parquet"
    write_parquet(path, numbers(5))
    assert broken("pulsar", tmp_path) == (
        f"{path} has 5 columns besides 'label' and 12 rows; HTRU2 has 8 features. Check which file "
        "it is."
    )
    write_parquet(path, numbers(7), c7=["x"] * N_ROWS)
    assert broken("pulsar", tmp_path) == (
        f"{path}: column 'c7' holds string, not numbers. Leave it out, or call it 'label'."
    )
    write_parquet(path, numbers(8)[:0])
    assert broken("pulsar", tmp_path) == f"{path} has no rows."
    spoilt = numbers(8)
    spoilt[3, 1] = np.inf
    write_parquet(path, spoilt)
    assert broken("pulsar", tmp_path) == (
        f"{path} row 4: infinity in column 'c1'. Every value must be finite."
    )
    path.write_bytes(path.read_bytes()[:-50])
    assert broken("pulsar", tmp_path).startswith(f"{path} cannot be read as Parquet (")


def test_missing_datasets_are_named_with_their_source(tmp_path: Path) -> None:
    write_parquet(tmp_path / "urbangb.parquet", numbers(2))
    found, missing = load_datasets(tmp_path)
    assert [entry.key for entry in found] == ["urban"]
    assert [entry.dataset.key for entry in missing] == KEYS[1:]
    assert all(isinstance(entry, MissingDataset) for entry in missing)
    assert str(missing[2]) == (
        "gas: not found, skipped. Gas sensor array temperature modulation (UCI 487; J. Burgués, "
        "S. Marco, 2018-2019)"
    )


def test_the_command_ends_with_an_error_where_a_file_is_broken(tmp_path: Path) -> None:
    (tmp_path / "HTRU_2.csv").write_text("1,2,3,4,5,6,7,8,0\n1,2,x,4,5,6,7,8,0\n")
    out = tmp_path / "out"
    done = kmeander("experiment", "--data", str(tmp_path), "--out", str(out))
    assert done.returncode == 1
    assert done.stderr == (
        f"kmeander experiment: {tmp_path / 'HTRU_2.csv'}: 'x' in column 'column 3' is not a "
        "number.\n"
    )
    assert not out.exists()
    absent = kmeander("experiment", "--data", str(tmp_path / "nowhere"))
    assert absent.returncode == 1
    assert absent.stderr == (
        f"kmeander experiment: {tmp_path / 'nowhere'} is not a folder. Name one that holds the "
        "datasets' files.\n"
    )
    (tmp_path / "HTRU_2.csv").unlink()
    empty = kmeander("experiment", "--data", str(tmp_path))
    assert empty.returncode == 1
    assert empty.stderr.splitlines()[0].startswith("urban: not found, skipped. UrbanGB, urban road")
    assert empty.stderr.splitlines()[-1] == (
        f"kmeander experiment: {tmp_path} holds none of the paper's datasets. Download at least "
        "one of those named above, or leave out --data to use the built-in samples."
    )


def test_the_samples_look_like_data() -> None:
    places, sensors = sample_datasets()
    assert places.points.shape == (8000, 2) and sensors.points.shape == (6000, 8)
    for dataset in (places, sensors):
        assert np.isfinite(dataset.points).all()
        assert len(np.unique(dataset.points, axis=0)) == len(dataset.points)
    again = sample_datasets()[1].points
    assert again.tobytes() == sensors.points.tobytes()
