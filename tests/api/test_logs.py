"""Log lines: constant messages, extras, and nothing secret."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import math
import sys
import warnings
from collections.abc import Iterator

import pytest

from deltaloop.api.logs import JsonFormatter, TextFormatter, configure_logging


@pytest.fixture(autouse=True)
def restore_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def record(message: str = "listed", **extras: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "deltaloop.cache", "levelname": "INFO", "msg": message, "created": 0.0})
    vars(made).update(extras)
    return made


def test_json_line_has_message_and_extras() -> None:
    line = json.loads(JsonFormatter().format(record(key="a/b", items=3, triggers=("x", "y"))))
    assert line == {
        "at": "1970-01-01T00:00:00.000+00:00",
        "level": "INFO",
        "logger": "deltaloop.cache",
        "message": "listed",
        "key": "a/b",
        "items": 3,
        "triggers": ["x", "y"],
    }


def test_text_line_has_extras_after_message() -> None:
    assert TextFormatter().format(record(key="a/b")) == "00:00:00.000 INFO    deltaloop.cache: listed key=a/b"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_log_lines_contain_no_secrets(formatter: logging.Formatter) -> None:
    try:
        raise RuntimeError("the header was Authorization: Bearer planted-in-error")
    except RuntimeError:
        made = record("sent Bearer planted-in-message", token="planted-in-token", nested={"password": "planted-deep"})
        made.exc_info = sys.exc_info()
    line = formatter.format(made)
    assert "planted" not in line
    assert "RuntimeError" in line


def test_configure_logging_replaces_handlers() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging(stream=first)
    configure_logging(output="json", level="DEBUG", stream=second)
    logging.getLogger("deltaloop.test").debug("once", extra={"key": "k"})
    assert first.getvalue() == ""
    assert json.loads(second.getvalue())["key"] == "k"


@pytest.mark.filterwarnings("always")
async def test_python_warnings_are_logged_with_task() -> None:
    stream = io.StringIO()
    configure_logging(output="json", stream=stream)

    async def work() -> None:
        warnings.warn("token=planted is old", DeprecationWarning, stacklevel=1)

    await asyncio.create_task(work(), name="reconcile maps default/a")
    await asyncio.to_thread(warnings.warn, "in a thread", UserWarning)
    in_task, in_thread = map(json.loads, stream.getvalue().splitlines())
    assert (in_task["message"], in_task["level"], in_task["task"]) == (
        "Python warns",
        "WARNING",
        "reconcile maps default/a",
    )
    assert in_task["warning"].startswith("DeprecationWarning: token=")
    assert "planted" not in in_task["warning"]
    assert in_task["where"].startswith(__file__)
    assert (in_thread["warning"], in_thread["task"]) == ("UserWarning: in a thread", "")
    file = io.StringIO()
    warnings.showwarning("told elsewhere", UserWarning, "a.py", 7, file=file)
    assert file.getvalue().startswith("a.py:7: UserWarning: told elsewhere")


def test_values_without_json_form_are_logged_as_text() -> None:
    line = json.loads(JsonFormatter().format(record(delay=math.inf, deep=[{"share": math.nan}])))
    assert (line["delay"], line["deep"]) == ("inf", [{"share": "nan"}])
    file = b"/data/\xff".decode(errors="surrogateescape")
    assert json.loads(JsonFormatter().format(record(file=file)))["file"] == "/data/\\udcff"
    assert TextFormatter().format(record(file=file)).endswith(" file=/data/\\udcff")
