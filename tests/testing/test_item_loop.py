"""The loop of one async test: what fixtures enter is left in reverse, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from deltaloop.testing.deterministic_loop.item_loop import ItemLoop, LeftoverTasksError


@asynccontextmanager
async def guest(name: str, seen: list[str], *, broken: bool = False) -> AsyncGenerator[str]:
    """Hold a task group, so that it matters in which task it is left."""
    async with asyncio.TaskGroup() as group:
        sleeping = group.create_task(asyncio.sleep(3600))
        seen.append(f"enter {name}")
        try:
            yield name
        finally:
            sleeping.cancel()
            seen.append(f"leave {name}")
    if broken:
        raise LookupError(name)


@pytest.fixture
def seen() -> list[str]:
    return []


def test_context_managers_exit_in_reverse_order_after_test(seen: list[str]) -> None:
    loop = ItemLoop(real=False)
    first, second, third = (guest(name, seen) for name in "abc")
    assert loop.enter(first) == "a"
    loop.enter(second)
    loop.enter(third)
    loop.leave(second)

    async def body() -> None:
        await asyncio.sleep(600)
        seen.append("body")

    loop.run_test(body)
    loop.leave(first)  # was left already
    loop.close()
    loop.close()
    assert seen == ["enter a", "enter b", "enter c", "leave b", "body", "leave c", "leave a"]


def test_context_managers_exit_without_test(seen: list[str]) -> None:
    loop = ItemLoop(real=True)
    loop.enter(guest("a", seen))
    loop.enter(guest("b", seen))
    loop.close()
    assert seen[2:] == ["leave b", "leave a"]


def test_context_managers_exit_after_failing_test(seen: list[str]) -> None:
    loop = ItemLoop(real=False)
    loop.enter(guest("a", seen))

    async def body() -> None:
        raise LookupError("body")

    with pytest.raises(LookupError, match="body"):
        loop.run_test(body)
    loop.close()
    assert seen == ["enter a", "leave a"]


def test_error_of_enter_or_exit_is_raised_and_others_exit(seen: list[str]) -> None:
    @asynccontextmanager
    async def closed() -> AsyncGenerator[None]:
        raise LookupError("closed")
        yield

    loop = ItemLoop(real=False)
    with pytest.raises(LookupError, match="closed"):
        loop.enter(closed())
    loop.enter(guest("a", seen))
    loop.enter(guest("b", seen, broken=True))

    async def body() -> None:
        pass

    with pytest.raises(LookupError, match="b"):
        loop.run_test(body)
    loop.close()
    assert seen[-2:] == ["leave b", "leave a"]


def test_leftover_tasks_of_test_are_found_but_not_of_fixtures(seen: list[str]) -> None:
    loop = ItemLoop(real=False)
    loop.enter(guest("a", seen))

    async def forgotten() -> None:
        await asyncio.sleep(3600)

    kept = list[asyncio.Task[None]]()

    async def body() -> None:
        kept.append(asyncio.create_task(forgotten()))

    with pytest.raises(LeftoverTasksError, match=r"<coroutine object .*forgotten"):
        loop.run_test(body)
    loop.close()
    assert kept[0].cancelled()
