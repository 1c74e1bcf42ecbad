"""No decision is made from the text of an error: facts are carried in fields, and texts may change."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from lab.house.message_decisions import decisions_by_text

SOURCE: Final = Path(__file__).parents[2] / "src" / "deltaloop"


def test_no_decision_depends_on_error_text() -> None:
    found: set[tuple[str, str]] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        source = path.read_text()
        lines = source.splitlines()
        place = path.relative_to(SOURCE).as_posix()
        found |= {(place, lines[line - 1].strip()) for line in decisions_by_text(source)}
    assert found == set()


_CAUGHT: Final = "try: f()\nexcept ValueError as odd:\n    "


@pytest.mark.parametrize(
    "code",
    [
        'if " cannot be handled as " not in str(error): pass',
        'why = error.status.message.partition(": ")[2]',
        _CAUGHT + "x = str(odd).startswith('a')",
        _CAUGHT + "x = re.search('a', str(odd))",
        _CAUGHT + "x = PATTERN.fullmatch(f'{odd}')",
        _CAUGHT + "x = odd.args[0] == 'a'",
        _CAUGHT + "x = 'a' in odd.args[0]",
        _CAUGHT + "text = str(odd).lower()\n    x = text.endswith('a')",
        _CAUGHT + "x = TABLE[str(odd)]",
        _CAUGHT + "x = TABLE.get(repr(odd))",
        _CAUGHT + "match str(odd):\n        case 'a': pass",
        _CAUGHT + "raise OtherError(str(odd).removeprefix('a'))",
        _CAUGHT + "g(1, str(odd))\ndef g(number, said):\n    return said.split(': ')",
        _CAUGHT + "g(odd)\ndef g(what: object):\n    return str(what) in ('a', 'b')",
        _CAUGHT + "x = g(odd) == 'a'\ndef g(what: BaseException):\n    return f'it is {what}'",
        "class A:\n    def f(self, trouble: OSError):\n        return trouble.strerror == 'File exists'",
        'x = "a" == failure.message',
        "x = any(cause.message == 'a' for cause in causes)",
        "def f(status):\n    return status.message == 'a'",
    ],
)
def test_decisions_by_text_are_detected(code: str) -> None:
    assert decisions_by_text(code)


@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError(str(error))",
        "x = name.partition(':')",
        "y = message in texts",
        _CAUGHT + "text = ' '.join(str(odd).split())",
        _CAUGHT + "text = str(odd)\n    if text: log(text)",
        _CAUGHT + "text = str(odd)\n    x = text != ''",
        _CAUGHT + "x = odd.code == 404 and odd.reason in REASONS",
        _CAUGHT + "g(odd)\ndef g(what):\n    return what.code == 1",
        "try: f()\nexcept ValueError as odd:\n    x = str(odd)\ndef g(x):\n    return x == 1",
    ],
)
def test_other_comparisons_are_ignored(code: str) -> None:
    assert decisions_by_text(code) == []
