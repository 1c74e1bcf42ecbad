"""Log output for programs: text for people, or one JSON object a line.

The message is constant and the variables are the record's extras, so both forms show them; every value passes through
the redaction function first. A library must not configure logging, a program must: call this once, in ``main``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO, cast, final

import msgspec

from deltaloop.api.redaction import redact

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return cast("dict[str, Any]", redact({name: _plain(value) for name, value in extras.items()}))


def _plain(value: object) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in cast("Mapping[Any, object]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in cast("list[object]", value)]
    return str(value)


@final
class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``at``, ``level``, ``logger``, ``message``, the extras, and ``error``, a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
            **_extras(record),
        }
        if record.exc_info:
            fields["error"] = redact(self.formatException(record.exc_info))
        return msgspec.json.encode(fields).decode()


@final
class TextFormatter(logging.Formatter):
    """``time level logger: message key=value ...``, and a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        extras = "".join(f" {name}={value}" for name, value in _extras(record).items())
        line = f"{at} {record.levelname:<7} {record.name}: {redact(record.getMessage())}{extras}"
        if record.exc_info:
            line += f"\n{redact(self.formatException(record.exc_info))}"
        return line


def configure_logging(
    *, output: Literal["text", "json"] = "text", level: int | str = "INFO", stream: TextIO | None = None
) -> None:
    """Send all log records of the process to a stream, replacing what was configured before.

    Args:
        output: Form of the lines.
        level: Lowest level that is shown.
        stream: Where to; standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if output == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)
