"""What the library logs on purpose is shown: no extra of a log line has a name under which everything is hidden."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import deltaloop
from deltaloop.api.redaction import REDACTED, redact


def extras(source: str) -> Iterator[str]:
    """Yield the names of all extras that are written out in calls of a logger."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "extra":
            for part in ast.walk(node.value):
                if isinstance(part, ast.Dict):
                    yield from (str(key.value) for key in part.keys if isinstance(key, ast.Constant))
                elif isinstance(part, ast.Call):
                    yield from (keyword.arg for keyword in part.keywords if keyword.arg)


def hidden(source: str) -> list[str]:
    return [name for name in extras(source) if redact({name: "x"}) == {name: REDACTED}]


def test_no_log_extra_is_redacted_by_name() -> None:
    root = Path(deltaloop.__file__).parent
    sources = [(path, path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))]
    assert {
        str(path.relative_to(root)): names for path, text in sources if "extra" in text and (names := hidden(text))
    } == {}


def test_redacted_extra_is_detected() -> None:
    assert hidden("log.info('won', extra=self._names(token=1, key=2))\nlog.info('x', extra={'password': 1})") == [
        "token",
        "password",
    ]
