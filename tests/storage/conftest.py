"""An S3 server on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kmeander.storage import object_store


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """Start moto's server on a free port, and return its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Make a bucket of its own for a test."""
    import s3fs

    settings = {
        "AWS_ENDPOINT_URL": s3_server,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    object_store._store.cache_clear()
    s3fs.S3FileSystem.clear_instance_cache()
    store = s3fs.S3FileSystem()
    store.mkdir("tests")
    yield "s3://tests"
    store.rm("tests", recursive=True)
    object_store._store.cache_clear()
