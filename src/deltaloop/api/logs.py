"""Log output for programs: text for people, or one JSON object a line.

The message is constant and the variables are the record's extras, so both forms show them; every value passes through
the redaction function first, and nothing in it forges a line, drives a terminal or fills the disk (``plain_text``). A
library must not configure logging, a program must: call this once, in ``main``.
"""

from __future__ import annotations

import logging
import math
import sys
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, Literal, TextIO, cast, final

import msgspec

from deltaloop.api.plain_text import LONGEST, cut, in_json, indented, one_line
from deltaloop.api.redaction import redact

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_MOST_ITEMS: Final = 100
_LONGEST_ERROR: Final = 16 * LONGEST


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return cast("dict[str, Any]", redact({name: _plain(value) for name, value in extras.items()}))


def _plain(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no form for it, and would say null
    if value is None or isinstance(value, int | bool):
        return value
    if isinstance(value, str):
        return cut(value, longest=_LONGEST_ERROR)
    if isinstance(value, Mapping):
        pairs = islice(cast("Mapping[Any, object]", value).items(), _MOST_ITEMS)
        return {cut(str(name), longest=LONGEST): _plain(item) for name, item in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        items = cast("list[object]", value)
        more = [f"and {len(items) - _MOST_ITEMS} more"] if len(items) > _MOST_ITEMS else []
        return [*(_plain(item) for item in islice(items, _MOST_ITEMS)), *more]
    return cut(str(value), longest=_LONGEST_ERROR)


def _sendable(value: Any) -> Any:
    """Return a value as JSON can have it: bounded texts, without halves of surrogate pairs."""
    if isinstance(value, str):
        return cut(value, longest=LONGEST).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_sendable(name): _sendable(item) for name, item in cast("dict[str, Any]", value).items()}
    return [_sendable(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _redacted(text: str) -> str:
    return str(redact(cut(text, longest=_LONGEST_ERROR)))


@final
class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``at``, ``level``, ``logger``, ``message``, the extras, and ``error``, a traceback.

    An extra that is named like one of the first four, or like a traceback that is there, is written as ``extra.NAME``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        fields: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _sendable(_redacted(record.getMessage())),
        }
        if record.exc_info:
            fields["error"] = None
        for name, value in _extras(record).items():
            shown = _sendable(name)
            fields[f"extra.{shown}" if shown in fields else shown] = _sendable(value)
        if record.exc_info:
            text = _redacted(self.formatException(record.exc_info))
            fields["error"] = text.encode("utf-8", "backslashreplace").decode()
        return in_json(msgspec.json.encode(fields).decode())


@final
class TextFormatter(logging.Formatter):
    """``time level logger: message key=value ...``, and a traceback below."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        extras = "".join(f" {one_line(name)}={one_line(str(value))}" for name, value in _extras(record).items())
        line = f"{at} {record.levelname:<7} {record.name}: {indented(_redacted(record.getMessage()))}{extras}"
        if record.exc_info:
            line += "\n  " + indented(_redacted(self.formatException(record.exc_info)))
        return line


@final
class _Unreadable(logging.Filter):
    """Makes one line for debugging of each request that cannot be read: anybody can send them, as many as they like."""

    def __init__(self, logger: logging.Logger, errors: type[BaseException]) -> None:
        super().__init__()
        self._logger = logger
        self._errors = errors

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None or not issubclass(kind, self._errors):
            return True
        record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
        record.msg, record.args, record.exc_info = "a request cannot be read", (), None
        vars(record)["error_type"] = kind.__name__
        return self._logger.isEnabledFor(logging.DEBUG)


def http_logger(name: str, *, unreadable: type[BaseException]) -> logging.Logger:
    """Return the logger that an HTTP library is to use for a server.

    A library takes a request that it cannot read for an error, and writes a traceback; whoever reaches the port could
    fill the disk with those.

    Args:
        name: Name of the logger.
        unreadable: What the library raises for such a request.
    """
    logger = logging.getLogger(name)
    if not any(isinstance(known, _Unreadable) for known in logger.filters):
        logger.addFilter(_Unreadable(logger, unreadable))
    return logger


def configure_logging(
    *, output: Literal["text", "json"] = "text", level: int | str = "INFO", stream: TextIO | None = None
) -> None:
    """Send all log records of the process to a stream, replacing what was configured before.

    So are Python's own warnings, with the task in which they arose: of a coroutine that was never awaited, for example,
    in which reconcile. Which warnings there are is for ``-W`` and ``PYTHONWARNINGS`` to say.

    Args:
        output: Form of the lines.
        level: Lowest level that is shown.
        stream: Where to; standard error by default.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if output == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)
    warnings.showwarning = _log_warning


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if file is not None:
        file.write(warnings.formatwarning(message, category, filename, lineno, line))
        return
    import asyncio  # only now: a command that never needs it does not wait for it

    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        task = None
    where = f"{filename}:{lineno}"
    extra = {"warning": f"{category.__name__}: {message}", "where": where, "task": task.get_name() if task else ""}
    logging.getLogger("py.warnings").warning("Python warns", extra=extra)
