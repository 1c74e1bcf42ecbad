"""A create passes at most 15 modules of the server, each once, and the page that follows a write names its files."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import CodeType, FrameType

from tests.apiserver.serving import config_map, serving

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "internals" / "following-a-write.md"
SOURCE = ROOT / "src" / "deltaloop" / "apiserver"
MOST = 15
Call = tuple[str, CodeType, int]  # file, code, place of the call that it comes from


def steps() -> list[str]:
    """Return the file of each step, from below the server's folder."""
    text = PAGE.read_text()
    found = re.findall(r"^\d+\. .*?\]\(\.\./src/deltaloop/apiserver/([\w/.]+)\)", text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^\d+\. ", text, re.MULTILINE))
    return found


async def calls_of_a_create() -> list[Call]:
    """Return the calls of functions of the server, but for properties, between a create's handler and its answer."""
    calls: list[Call] = []
    stack: list[int] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(str(SOURCE)) or code.co_name.startswith(("<", "__")):
            return
        if event == "call":
            name = str(Path(code.co_filename).relative_to(SOURCE))
            calls.append((name, code, stack[-1] if stack else -1))
            stack.append(len(calls) - 1)
        elif event == "return" and stack:
            stack.pop()

    async with serving() as s:
        assert (await s.call.post("/api/v1/namespaces/default/configmaps", config_map("a"))).status == 201
        sys.setprofile(note)
        try:
            await s.call.post("/api/v1/namespaces/default/configmaps", config_map("b"))
        finally:
            sys.setprofile(None)
    return calls


def properties() -> set[CodeType]:
    """Return the code of all properties of the server's classes."""
    found: set[CodeType] = set()
    for name, module in list(sys.modules.items()):
        if name.startswith("deltaloop.apiserver"):
            for _, each in inspect.getmembers(module, inspect.isclass):
                getters = (value.fget for value in vars(each).values() if isinstance(value, property))
                found |= {getter.__code__ for getter in getters if inspect.isfunction(getter)}
    return found


def walk(calls: list[Call]) -> list[str]:
    """Return the files that a reader of a create passes, in their order.

    The path is what is on the stack when the object is stored, and the functions that these call in their own files.
    Each call from the path into another file of the server is a stop.
    """
    handler = next(place for place, (_, code, _) in enumerate(calls) if code.co_qualname == "WriteHandlers.create")
    path: set[int] = set()
    place = next(place for place, (_, code, _) in enumerate(calls) if code.co_qualname == "RevisionStore._append")
    while place >= handler:
        path.add(place)
        place = calls[place][2]
    files, accessors = {calls[place][0] for place in path}, properties()
    stops: list[str] = []
    for place, (file, code, caller) in enumerate(calls):
        if caller in path and file == calls[caller][0] and file in files:
            path.add(place)
        enters = place == handler or (caller in path and file != calls[caller][0])
        if enters and code not in accessors:
            stops.append(file)
    return stops


async def test_create_passes_few_files_once_each() -> None:
    passed = walk(await calls_of_a_create())
    assert len(passed) <= MOST
    assert len(passed) == len(set(passed)), passed


async def test_page_lists_files_in_order() -> None:
    passed = walk(await calls_of_a_create())
    named = steps()
    assert named == [file for file in passed if file in named]
