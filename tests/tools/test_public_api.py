"""The snapshot of the public API shows every change that a caller can notice, and no other."""

from __future__ import annotations

import itertools
import sys
from types import ModuleType

import pytest
from tools.public_api import describe
from tools.public_api.__main__ import FILE, MOST

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

class Store(Protocol):
    def add(self, item: str) -> None: ...

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
    waited: Final = waits(get)

@dataclass(frozen=True)
class Options:
    period: float = 5.0
    names: list[str] = field(default_factory=list)

@overload
def opened(a: int) -> int: ...
@overload
def opened(a: str) -> str: ...
def opened(a: object) -> object: return a

async def connect(*, timeout: float = 1.0, **more: Unpack[Keywords]) -> Client: ...
"""

_NUMBERS = itertools.count()


def described(source: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Describe a module as if it were a room."""
    module = ModuleType(f"deltaloop.example{next(_NUMBERS)}")  # overloads are kept by module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, "example.py", "exec", dont_inherit=True), vars(module))
    public = ("Client", "Keywords", "Mode", "Options", "Store", "connect", "opened")
    values = {f"deltaloop.example.{name}": vars(module)[name] for name in public} | {"deltaloop.Mode": module.Mode}
    monkeypatch.setattr(describe, "public_values", lambda: values)
    return [line.removeprefix("deltaloop.example.") for line in describe.api()[:-1]]


def test_signatures_bases_and_members_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    assert described(SOURCE, monkeypatch) == [
        (
            "Client class (a: int, /, b: str = 'x', *, c: Mode = Mode.ON): async get(name, **Keywords), kind, made(), "
            "moved(name), size, waited(name, **Keywords)"
        ),
        "Keywords class(TypedDict): timeout: float | None",
        "Mode = deltaloop.Mode class(StrEnum): ON='on'",
        "Options class (period: float = 5.0, names: list[str] = ...)",
        "Store class: add(item)",
        "connect async (*, timeout: float = 1.0, **{timeout: float | None}) -> Client",
        "opened (a: int) -> int | (a: str) -> str",
    ]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ('b: str = "x"', 'b: str = "y"', ["Client"]),
        ("*, c: Mode", "c: Mode", ["Client"]),
        ("a: int, /,", "a: int,", ["Client"]),
        ("async def get", "def get", ["Client"]),
        ("name: str, **more", "key: str, **more", ["Client"]),
        ("timeout: float | None", "timeout: float", ["Keywords", "connect"]),
        ("def size", "def length", ["Client"]),
        ("def add(self, item: str)", 'def add(self, item: str = "")', ["Store"]),
        ("class Client(_Inner)", "class Client", ["Client"]),
        ("class Client(_Inner)", "class Client(_Inner, Exception)", ["Client"]),
        ('ON = "on"', 'ON = "ON"', ["Mode"]),
        ("period: float = 5.0", "period: float = 6.0", ["Options"]),
        ("a: str) -> str", "a: bytes) -> bytes", ["opened"]),
        # A caller cannot notice these.
        ("_hidden = 1", "_hidden = 2", []),
        ("def _private(self)", "def _other(self)", []),
        ("_Inner", "_Outer", []),
        ('-> str: return ""', '-> str: return "longer"', []),
        ("def get(self,", "def get(\n        self,", []),
    ],
)
def test_visible_change_is_detected(old: str, new: str, changed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert old in SOURCE
    was, now = described(SOURCE, monkeypatch), described(SOURCE.replace(old, new), monkeypatch)
    assert sorted({line.split()[0] for line in {*was} ^ {*now}}) == changed


def test_method_moved_to_private_base_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = SOURCE.replace("    def _private(self) -> None: ...\n", "").replace(
        "class _Inner:", "class _Inner:\n    def _private(self) -> None: ...\n    kind: str"
    )
    assert described(SOURCE, monkeypatch) == described(moved, monkeypatch)


def test_api_snapshot_is_small_without_addresses() -> None:
    found = describe.api()
    assert len(found) <= MOST
    assert any(line.startswith("deltaloop.client.Client = deltaloop.Client class (") for line in found)
    assert "POD" in found[-1].split(", ")
    assert [line for line in found if " at 0x" in line] == []
    assert FILE.read_text().splitlines()[-1].startswith("deltaloop.kinds ")
