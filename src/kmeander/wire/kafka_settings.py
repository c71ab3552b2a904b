"""Settings of librdkafka that a user may give: read from a file, and none that undoes a promise."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kmeander.exceptions import ArgumentError, InputError, argument

# Settings whose values nobody else may see, as librdkafka marks them.
_SECRET = re.compile(r"password|passphrase|secret|key\.pem|oauthbearer\.config")


@dataclass(frozen=True)
class _Guard:
    """A setting that kmeander makes itself: the values it may have, and why no other.

    Parameters
    ----------
    values : tuple of str
        What may be given all the same, because it is what kmeander does.
    reason : str
    instead : str, optional
        The argument to give instead.
    """

    values: tuple[str, ...]
    reason: str
    instead: str | None = None


_OFFSETS = _Guard(
    ("false",),
    "offsets are kept in the checkpoint, with the model, so that the two cannot disagree",
)
_DELIVERED = _Guard(("all", "-1"), "a row counts as delivered once every replica in step has it")
_ADDRESS = _Guard((), "the address of the topic names its brokers")
_GUARDS = {
    "enable.auto.commit": _OFFSETS,
    "auto.commit.enable": _OFFSETS,
    "enable.auto.offset.store": _OFFSETS,
    "auto.offset.reset": _Guard(
        ("error",), "messages that are gone must be an error, not a leap", "start"
    ),
    "enable.partition.eof": _Guard(
        ("true",), "without it nobody knows where a topic ends"
    ),
    "enable.idempotence": _Guard(
        ("true",), "rows would come twice, or in another order, when a broker fails"
    ),
    "acks": _DELIVERED,
    "request.required.acks": _DELIVERED,
    "delivery.report.only.error": _Guard(
        ("false",), "a checkpoint must know how far the topic was written"
    ),
    "transactional.id": _Guard(
        (), "it must be the same for each run from a checkpoint, so kmeander makes it",
        "kafka_transactions",
    ),
    "group.id": _Guard((), "it has an option of its own", "group"),
    "bootstrap.servers": _ADDRESS,
    "metadata.broker.list": _ADDRESS,
}  # fmt: skip


def is_secret(key: str) -> bool:
    """Whether nobody else may see the value of a setting.

    Examples
    --------
    >>> is_secret("sasl.password"), is_secret("ssl.key.pem"), is_secret("sasl.username")
    (True, True, False)
    """
    return _SECRET.search(key) is not None


def kafka_settings(
    options: Mapping[str, str] | None, config: str | os.PathLike[str] | None
) -> dict[str, str]:
    """Return the settings of a file with those of `options` over them, if none undoes a promise."""
    settings = {} if config is None else _read(Path(config))
    if config is not None:
        _check(settings, argument("kafka_config", os.fspath(config)))
    _check(options or {}, argument("kafka_options"))
    return {**settings, **(options or {})}


def _check(settings: Mapping[str, str], given_by: str) -> None:
    for key, value in settings.items():
        guard = _GUARDS.get(key)
        if guard is None or str(value).lower() in guard.values:
            continue
        instead = "" if guard.instead is None else f" Use {argument(guard.instead)} instead."
        raise ArgumentError(f"{given_by} cannot set {key}={value}: {guard.reason}.{instead}")


def _read(path: Path) -> dict[str, str]:
    """Read lines of ``key=value``; messages do not repeat them, for they may hold secrets."""
    name = argument("kafka_config", str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError:
        raise InputError(f"{name} cannot be read: it is not UTF-8.") from None
    settings: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not key:
            raise InputError(
                f"{name} line {number} must be KEY=VALUE, such as security.protocol=SASL_SSL, or a "
                "comment that begins with #."
            )
        if key in settings:
            raise InputError(f"{name} line {number} sets {key} again. Leave one of the two lines.")
        settings[key] = value
    return settings
