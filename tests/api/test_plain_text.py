"""Text from outside in a terminal and in a log: one line stays one line, and nothing in it acts."""

from __future__ import annotations

import io
import json
import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.logs import JsonFormatter, TextFormatter
from deltaloop.api.plain_text import in_json, indented, one_line
from deltaloop.api.status import ApiError, Status, error_from_status
from deltaloop.cli.klog import KlogHandler

HOSTILE = "web\n12:00:00.000 INFO    deltaloop: all is well\x1b[2J\x9b31m\x7f\u202egnp.exe\u2028\ud800\r\x08"
SHOWN = r"web\n12:00:00.000 INFO    deltaloop: all is well\x1b[2J\x9b31m\x7f\u202egnp.exe\u2028\ud800\r\x08"
ANY_TEXT = st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Cs", "L", "P"]))
FORBIDDEN = ("Cc", "Zl", "Zp", "Cs")
MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u200b"


def acts(text: str) -> list[str]:
    """Return what in a text is more than something to see."""
    return [hex(ord(c)) for c in text if unicodedata.category(c) in FORBIDDEN or c in MARKS]


def record(message: str = "new leader", **extras: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "deltaloop", "levelname": "INFO", "msg": message, "created": 0.0})
    vars(made).update(extras)
    return made


def named(name: str) -> logging.LogRecord:
    made = record()
    vars(made)[name] = 1
    return made


def test_each_control_character_is_escaped() -> None:
    """A text without one is passed through without being looked at character by character."""
    acting = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) in FORBIDDEN] + [*MARKS]
    assert [hex(ord(c)) for c in acting if c in one_line(f"a{c}b")] == []
    encoded = json.dumps([c for c in acting if unicodedata.category(c) != "Cs"], ensure_ascii=False)
    assert [hex(ord(c)) for c in acting if c in in_json(encoded)] == []


def failed(error: Exception) -> logging.LogRecord:
    made = record("it failed")
    made.exc_info = (type(error), error, None)
    return made


def klog(made: logging.LogRecord) -> str:
    stream = io.StringIO()
    KlogHandler(stream, verbosity=9).emit(made)
    return stream.getvalue().removesuffix("\n")


def test_one_line_escapes_control_characters_like_python() -> None:
    assert one_line(HOSTILE) == SHOWN
    assert one_line("Grüße, 世界 👩\u200d🚀 C:\\new") == "Grüße, 世界 👩\u200d🚀 C:\\new"
    assert one_line("x" * 5000) == "x" * 4096 + "… (5000 characters)"
    assert indented("first\nsecond\x1b") == "first\n  second\\x1b"


@given(ANY_TEXT)
def test_lines_contain_no_control_characters(text: str) -> None:
    assert acts(one_line(text)) == []
    assert acts(indented(text).replace("\n", "").replace("\t", "")) == []
    readable = text.encode("utf-8", "replace").decode()
    encoded = in_json(json.dumps(readable, ensure_ascii=False))
    assert acts(encoded) == []
    assert json.loads(encoded) == readable


@pytest.mark.parametrize(
    "made",
    [
        record(leader=HOSTILE),
        record(names=[HOSTILE, {"deep": HOSTILE}]),
        named(HOSTILE),
        record(leader="x" * 1_000_000),
        record(names=["x" * 1000] * 5_000),
        record(f"the leader is {HOSTILE}"),
        record(f"the leader is {'x' * 1_000_000}"),
        failed(RuntimeError(HOSTILE)),
        failed(error_from_status(Status(code=500, message=HOSTILE))),
        failed(RuntimeError("x" * 1_000_000)),
    ],
    ids=["extra", "nested", "name", "long", "many", "message", "long message", "error", "API error", "long error"],
)
@pytest.mark.parametrize("write", [TextFormatter().format, JsonFormatter().format, klog])
def test_log_record_is_one_bounded_line(write: object, made: logging.LogRecord) -> None:
    assert callable(write)
    first, *more = str(write(made)).split("\n")
    assert all(line.startswith("  ") for line in more)
    assert acts("".join([first, *more])) == []
    assert len(first) + sum(map(len, more)) < 700_000


def test_new_leader_is_one_klog_line() -> None:
    made = record("new leader elected: %s", verbatim=True)
    made.args = (HOSTILE,)
    assert klog(made).endswith(f"new leader elected: {SHOWN}")
    held = record("lease of another candidate has not yet expired", holder=HOSTILE, lock="ns/name")
    assert klog(held).endswith(f"lock is held by {SHOWN} and has not yet expired")


def test_extras_do_not_replace_fields_of_line() -> None:
    names = ("at", "level", "logger", "message")
    made = record("as it was", error=1)
    vars(made).update(dict.fromkeys(names, "forged"))
    line = json.loads(JsonFormatter().format(made))
    assert {name: line[name] for name in names} == {
        "at": "1970-01-01T00:00:00.000+00:00",
        "level": "INFO",
        "logger": "deltaloop",
        "message": "as it was",
    }
    assert [line[f"extra.{name}"] for name in ("at", "level", "logger")] == ["forged"] * 3
    assert line["error"] == 1
    both = failed(RuntimeError("the real one"))
    vars(both)["error"] = "forged"
    line = json.loads(JsonFormatter().format(both))
    assert "the real one" in line["error"]
    assert line["extra.error"] == "forged"


def test_server_error_text_is_one_line() -> None:
    error = ApiError(Status(code=403, message=HOSTILE))
    assert str(error) == SHOWN
    assert error.status.message == HOSTILE
    assert len(str(ApiError(Status(message="x" * 1_000_000)))) < 5_000
    assert acts(str(ApiError(Status(code=403, reason=HOSTILE)))) == []
