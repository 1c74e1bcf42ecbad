"""Log formatters for programs, as text or JSON."""

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
        return value if math.isfinite(value) else str(value)  # JSON would encode NaN and infinities as null
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
    """Return a value for JSON: limited strings without lone surrogates."""
    if isinstance(value, str):
        return cut(value, longest=LONGEST).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_sendable(name): _sendable(item) for name, item in cast("dict[str, Any]", value).items()}
    return [_sendable(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _redacted(text: str) -> str:
    return str(redact(cut(text, longest=_LONGEST_ERROR)))


@final
class JsonFormatter(logging.Formatter):
    """Formatter that writes one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
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
    """Formatter that writes ``time level logger: message key=value ...``, followed by a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        extras = "".join(f" {one_line(name)}={one_line(str(value))}" for name, value in _extras(record).items())
        line = f"{at} {record.levelname:<7} {record.name}: {indented(_redacted(record.getMessage()))}{extras}"
        if record.exc_info:
            line += "\n  " + indented(_redacted(self.formatException(record.exc_info)))
        return line


@final
class _Unreadable(logging.Filter):
    """Filter that reduces each unreadable request to one debug line, because anyone can send any number of them."""

    def __init__(self, logger: logging.Logger, errors: type[BaseException]) -> None:
        super().__init__()
        self._logger = logger
        self._errors = errors

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0] if record.exc_info else None
        if kind is None or not issubclass(kind, self._errors):
            return True
        record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
        record.msg, record.args, record.exc_info = "cannot read request", (), None
        vars(record)["error_type"] = kind.__name__
        return self._logger.isEnabledFor(logging.DEBUG)


def http_logger(name: str, *, unreadable: type[BaseException]) -> logging.Logger:
    """Return the logger of an HTTP server library without a traceback for each invalid request (``unreadable``)."""
    logger = logging.getLogger(name)
    if not any(isinstance(known, _Unreadable) for known in logger.filters):
        logger.addFilter(_Unreadable(logger, unreadable))
    return logger


def configure_logging(
    *, output: Literal["text", "json"] = "text", level: int | str = "INFO", stream: TextIO | None = None
) -> None:
    """Write all log records of the process to a stream, and replace the existing configuration.

    Python warnings are also logged, with the name of the current task, which identifies for example the reconcile with
    a coroutine that was never awaited. ``-W`` and ``PYTHONWARNINGS`` select the warnings.

    Args:
        output: Log format.
        level: Lowest level to log.
        stream: Output stream. None means standard error.
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
    import asyncio  # imported on use, because it slows the start of commands

    try:
        task = asyncio.current_task()
    except RuntimeError:  # this thread has no running event loop
        task = None
    where = f"{filename}:{lineno}"
    extra = {"warning": f"{category.__name__}: {message}", "where": where, "task": task.get_name() if task else ""}
    logging.getLogger("py.warnings").warning("Python warns", extra=extra)
