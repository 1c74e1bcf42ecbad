"""The process in which a room's tests are collected once, and which forks a child for each mutant."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from lab.mutants.systematic.instrument import Room, first_line, mutated_function
from lab.mutants.systematic.mutant import Mutant
from lab.mutants.systematic.tree import at

_MEMORY = 6 << 30
_SPEND, _WAIT = 3.0, 15.0  # seconds beyond what a test needs, of computing and of time


@dataclass
class Covered:
    """What one test needs, and which statements it runs."""

    test: str
    seconds: float
    computing: float
    passed: bool
    ran: bytes = b""


@dataclass
class Verdict:
    """How a mutant fared: the test that kills it, and how, or nothing."""

    killed: str | None = None
    how: str = ""
    tests: int = 0
    seconds: float = 0.0


@dataclass
class Tests:
    """The tests that were collected, and what each covers."""

    items: dict[str, pytest.Item]
    at_import: bytes
    covered: dict[str, Covered] = field(default_factory=dict[str, Covered])
    kills: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict[tuple[str, str], dict[str, int]])

    def of(self, room: Room, mutant: Mutant) -> list[Covered]:
        """Those that run the changed statement: those that killed its neighbours first, then the fastest."""
        number = None if mutant.statement is None else room.numbers[mutant.module, mutant.statement]
        if number is None or self.at_import[number]:
            fit = self._of_module(room, mutant.module)
        else:
            fit = [each for each in self.covered.values() if each.passed and each.ran[number]]
        near = self.kills.get((mutant.module, mutant.function), {})
        there = self.kills.get((mutant.module, ""), {})
        return sorted(fit, key=lambda each: (-near.get(each.test, 0), -there.get(each.test, 0), each.computing))

    def _of_module(self, room: Room, module: str) -> list[Covered]:
        """All tests of the files in which one runs the module: what an import makes is used without a statement."""
        numbers = [number for (there, _), number in room.numbers.items() if there == module]
        passed = [each for each in self.covered.values() if each.passed]
        files = {_file(each) for each in passed if any(each.ran[number] for number in numbers)}
        return [each for each in passed if not files or _file(each) in files]

    def note(self, mutant: Mutant, test: str) -> None:
        for place in ((mutant.module, mutant.function), (mutant.module, "")):
            counts = self.kills.setdefault(place, {})
            counts[test] = counts.get(test, 0) + 1


class InChild:
    """A forked child that reports lines over a pipe, one for each test, and is ended by its limits."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        read, write = os.pipe()
        self.started_at = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                os.close(read)
                os.setpgid(0, 0)
                _silence()
                work(lambda line: void(os.write(write, f"{line}\n".encode())))
                code = 0
            except BaseException as error:  # noqa: BLE001  # whatever it is, the parent has to hear of it
                os.write(write, f"broken {type(error).__name__}: {str(error)[:300]!r}\n".encode())
            finally:
                os._exit(code)
        os.close(write)
        self.pipe = read
        self.text = b""

    def lines(self) -> list[str]:
        return self.text.decode(errors="replace").splitlines()

    def has_said(self) -> bool:
        """Whether its last word has come."""
        said = self.lines()[-1:]
        return bool(said) and self.text.endswith(b"\n") and said[0].startswith(("failed", "survived", "broken"))

    def end(self) -> int:
        """End it and all it started, whether or not it is still there."""
        for end in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        return status


def _file(covered: Covered) -> str:
    return covered.test.partition("::")[0]


def void(_: object) -> None:
    return None


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nothing, each)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_one(item: pytest.Item, after: pytest.Item | None) -> tuple[bool, str]:
    """Whether it passed, and what it said if not."""
    for report in runtestprotocol(item, log=False, nextitem=after):
        if report.failed:
            return False, str(report.longreprtext).strip().rsplit("\n", 1)[-1]
    return True, ""


def measure(room: Room, tests: Tests, scratch: Path) -> None:
    """Run all tests once, in a child, and learn what each covers and needs."""
    target = scratch / "covered"

    def work(say: Callable[[str], None]) -> None:
        _own_folder(next(iter(tests.items.values())), scratch)
        found: list[Covered] = []
        items = list(tests.items.values())
        for item, after in zip(items, [*items[1:], None], strict=True):
            room.ran[:] = bytes(len(room.ran))
            begun, computed = time.monotonic(), time.process_time()
            passed, _ = run_one(item, after)
            found.append(
                Covered(item.nodeid, time.monotonic() - begun, time.process_time() - computed, passed, bytes(room.ran))
            )
        target.write_bytes(pickle.dumps(found))
        say("done")

    child = InChild(work)
    os.set_blocking(child.pipe, True)
    while chunk := os.read(child.pipe, 4096):
        child.text += chunk
    child.end()
    if child.lines() != ["done"]:
        raise RuntimeError(f"the tests could not be measured: {child.lines()}")
    for each in pickle.loads(target.read_bytes()):  # written by our own child above
        tests.covered[each.test] = each


def functions_of(room: Room) -> dict[tuple[str, int, str], list[FunctionType]]:
    """All functions of the room's modules, by file, first line and name."""
    files = {room.file(module) for module in room.trees}
    found: dict[tuple[str, int, str], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in files:
            code = each.__code__
            found.setdefault((code.co_filename, code.co_firstlineno, code.co_name), []).append(each)
    return found


class Swapper:
    """Puts a mutant's code into the functions that are there."""

    def __init__(self, room: Room) -> None:
        self.room = room
        room.import_all()
        self.functions = functions_of(room)

    def swap(self, mutant: Mutant) -> bool:
        """False: it runs when its module is imported, or has other free variables than what stands."""
        if mutant.outermost is None:
            return False
        node = at(self.room.trees[mutant.module], mutant.outermost)
        there = self.functions.get((self.room.file(mutant.module), first_line(node), node.name), [])
        code = mutated_function(self.room, mutant)
        if not there or any(each.__code__.co_freevars != code.co_freevars for each in there):
            return False
        for each in there:
            each.__code__ = code
        return True


def _own_folder(item: pytest.Item, scratch: Path) -> None:
    """Give the child a folder of its own for temporary paths, made when a test wants one."""
    factory: Any = item.config._tmp_path_factory  # type: ignore[attr-defined]  # each child needs its own
    factory._given_basetemp = scratch / f"tmp-{os.getpid()}"
    factory._basetemp = None


def try_tests(
    order: Sequence[Covered], items: dict[str, pytest.Item], say: Callable[[str], None], scratch: Path
) -> None:
    """Run tests until one fails; each has its own limit of computing."""
    _own_folder(items[order[0].test], scratch)
    for index, each in enumerate(order):
        say(f"test {index}")
        signal.setitimer(signal.ITIMER_PROF, _SPEND + 4 * each.computing)
        after = items[order[index + 1].test] if index + 1 < len(order) else None
        passed, why = run_one(items[each.test], after)
        if not passed:
            say(f"failed {index} {why[:200]!r}")
            return
    say("survived")


def limit(each: Covered) -> float:
    """Seconds after which a test hangs."""
    return _WAIT + 8 * each.seconds
