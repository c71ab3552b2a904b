"""Object stores on this machine: moto's S3, Azurite, and an emulator of Google's."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kmeander.storage import object_store

# What `.ci/run` installs, and Azurite's account, which all its users share.
AZURITE = Path(__file__).parents[2] / ".azurite" / "node_modules" / ".bin" / "azurite-blob"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
BUCKET = "tests"


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """Start moto's server, and return how it is reached."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    server.stop()


@pytest.fixture(scope="session")
def abfs() -> Iterator[dict[str, str]]:
    """Start Azurite, and return how it is reached."""
    program = shutil.which("azurite-blob") or (str(AZURITE) if AZURITE.exists() else None)
    if program is None:
        pytest.skip("there is no Azurite: npm install --prefix .azurite azurite")
    port = str(_free_port())
    address = f"http://127.0.0.1:{port}/{ACCOUNT}"
    server = subprocess.Popen(
        [
            program, "--blobHost", "127.0.0.1", "--blobPort", port, "--inMemoryPersistence",
            "--silent", "--skipApiVersionCheck", "--disableTelemetry",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _wait_for(int(port))
    yield {
        "AZURE_STORAGE_CONNECTION_STRING": (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
            f"BlobEndpoint={address};"
        )
    }
    server.terminate()
    server.wait()


@pytest.fixture(scope="session")
def gs() -> Iterator[dict[str, str]]:
    """Start an emulator of Google's storage, and return how it is reached."""
    from gcp_storage_emulator.server import create_server

    port = _free_port()
    server = create_server("127.0.0.1", port, in_memory=True)
    server.start()
    yield {
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # asks by gRPC, which the emulator lacks
        "GOOGLE_CLOUD_PROJECT": "tests",
    }
    server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_for(port: int) -> None:
    for _ in range(300):
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return
        time.sleep(0.1)
    raise AssertionError("the server did not start")


def _bucket(
    scheme: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    import fsspec

    settings: dict[str, str] = request.getfixturevalue(scheme)
    for name, value in {**settings, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    object_store._store.cache_clear()
    fsspec.get_filesystem_class(scheme).clear_instance_cache()
    store = fsspec.filesystem(scheme)
    store.mkdir(BUCKET)
    yield f"{scheme}://{BUCKET}"
    store.rm(BUCKET, recursive=True)
    object_store._store.cache_clear()


@pytest.fixture(params=["s3", "abfs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a bucket for a test, on a store that refuses to create an object twice."""
    yield from _bucket(request.param, request, monkeypatch)


@pytest.fixture(params=["s3", "abfs", "gs"])
def any_bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a bucket for a test, also where the emulator does create an object twice."""
    yield from _bucket(request.param, request, monkeypatch)
