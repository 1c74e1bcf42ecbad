"""The record of the public API sees what a caller could notice, and nothing else."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tools.public_api import describe, record
from tools.public_api.record import Record, changes, unnamed

SOURCE = """
from __future__ import annotations
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import update_wrapper
from typing import Final, Protocol, TypedDict, Unpack, overload

class Keywords(TypedDict, total=False):
    timeout: float | None

class Mode(StrEnum):
    ON = "on"

def waits(verb: object) -> object:
    def waiting() -> None: ...
    return update_wrapper(waiting, verb)

class _Inner:
    def moved(self, name: str) -> bool: return True

class Client(_Inner):
    kind: str
    _hidden = 1
    def __init__(self, a: int, /, b: str = "x", *, c: Mode = Mode.ON) -> None: ...
    def __repr__(self) -> str: return ""
    def _private(self) -> None: ...
    async def get(self, name: str, **more: Unpack[Keywords]) -> Mapping[str, object]: return {}
    @property
    def size(self) -> int: return 1
    @classmethod
    def made(cls) -> Client: return cls(1)
    @overload
    def of(self, a: int) -> int: ...
    @overload
    def of(self, a: str) -> str: ...
    def of(self, a: object) -> object: return a
    waited: Final = waits(get)

@dataclass(frozen=True)
class Options:
    period: float = 5.0
    names: list[str] = field(default_factory=list)
"""


_NUMBERS = itertools.count()


def described(source: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Describe a module as if it were a room."""
    module = ModuleType(f"deltaloop.example{next(_NUMBERS)}")  # overloads are kept by module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "example.py", "exec", dont_inherit=True), vars(module))
    public = ("Client", "Mode", "Options")
    monkeypatch.setattr(
        describe, "public_values", lambda: {f"deltaloop.example.{name}": vars(module)[name] for name in public}
    )
    return {name.removeprefix("deltaloop.example."): text for name, text in describe.api().items()}


def test_signatures_bases_and_members_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    assert described(SOURCE, monkeypatch) == {
        "Client": "class",
        "Client.__init__": "(self, a: int, /, b: str = 'x', *, c: Mode = Mode.ON) -> None",
        "Client.get": "async (self, name: str, **{timeout: float | None}) -> Mapping[str, object]",
        "Client.kind": ": str",
        "Client.made": "classmethod (cls) -> Client",
        "Client.moved": "(self, name: str) -> bool",
        "Client.of": "(self, a: int) -> int | (self, a: str) -> str",
        "Client.size": "property -> int",
        "Client.waited": "(self, name: str, **{timeout: float | None}) -> Mapping[str, object]",
        "Mode": "class(StrEnum)",
        "Mode.ON": "'on'",
        "Options": "class",
        "Options.__init__": "(self, period: float = 5.0, names: list[str] = ...) -> None",
        "Options.names": ": list[str] = ...",
        "Options.period": ": float = 5.0",
    }


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('b: str = "x"', 'b: str = "y"', ["Client.__init__"]),
        ("*, c: Mode", "c: Mode", ["Client.__init__"]),
        ("a: int, /,", "a: int,", ["Client.__init__"]),
        ("async def get", "def get", ["Client.get"]),  # what waits for it is called as before
        ("timeout: float | None", "timeout: float", ["Client.get", "Client.waited"]),
        ("timeout:", "limit:", ["Client.get", "Client.waited"]),
        ("-> Mapping[str, object]", "-> dict[str, object]", ["Client.get", "Client.waited"]),
        ("def size", "def length", ["Client.length", "Client.size"]),
        ("    @property\n", "", ["Client.size"]),
        ("class Client(_Inner)", "class Client", ["Client.moved"]),
        ("class Client(_Inner)", "class Client(_Inner, Exception)", ["Client"]),
        ('ON = "on"', 'ON = "ON"', ["Mode.ON"]),
        ("period: float = 5.0", "period: float = 6.0", ["Options.__init__", "Options.period"]),
        ("a: str) -> str", "a: bytes) -> bytes", ["Client.of"]),
        # Nobody outside can tell these.
        ("_hidden = 1", "_hidden = 2", []),
        ("def _private(self)", "def _other(self)", []),
        ("_Inner", "_Outer", []),
        ('-> str: return ""', '-> str: return "longer"', []),
        ("def get(self,", "def get(\n        self,", []),
    ],
)
def test_a_change_is_seen_if_a_caller_can_notice_it(
    old: str, new: str, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert old in SOURCE
    was, now = described(SOURCE, monkeypatch), described(SOURCE.replace(old, new), monkeypatch)
    assert [each.name for each in changes(was, now)] == changed


def test_what_moves_into_a_private_base_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = SOURCE.replace("    def _private(self) -> None: ...\n", "").replace(
        "class _Inner:", "class _Inner:\n    def _private(self) -> None: ...\n    kind: str"
    )
    assert changes(described(SOURCE, monkeypatch), described(moved, monkeypatch)) == []


def test_a_class_that_goes_is_one_change() -> None:
    was = {"deltaloop.client.Client": "class", "deltaloop.client.Client.get": "()", "deltaloop.Client": "is …"}
    assert [str(each) for each in changes(was, {})] == ["- deltaloop.Client is …", "- deltaloop.client.Client class"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ["Client.get", "path"]),
        ("Client.get and path", ["Client.get", "path"]),
        ("`Client.get` and `dl.path` say more.", []),
        ("`get` and `paths`", ["Client.get", "path"]),
        ("`client.Client.get(name)`; `path(...)` is `dl.path`", []),
    ],
)
def test_a_change_must_be_named_in_a_code_span(text: str, left: list[str]) -> None:
    found = changes(
        {"deltaloop.client.Client.get": "(a)"}, {"deltaloop.client.Client.get": "(b)", "deltaloop.path": "x"}
    )
    assert sorted(each.word for each in unnamed(found, text)) == left


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "recorded.txt"
    written = Record(version="1.2.0", lines={"deltaloop.a": "(b: str = ' ') -> None", "deltaloop.b": "class"})
    record.write(written, file)
    assert record.read(file) == written
    assert record.read(tmp_path / "missing") == Record(version="", lines={})


def test_the_real_api_is_described_without_addresses() -> None:
    found = describe.api()
    assert "deltaloop.client.Client.get" in found
    assert "deltaloop.kinds.POD" in found
    assert not [f"{name} {text}" for name, text in found.items() if " at 0x" in text or "\n" in text]
