"""What surrounds one reconcile."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from deltaloop.api.references import Trigger
from deltaloop.client import Client, ClientConfig
from deltaloop.runtime import Context, Request
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.reconcile.context import Surroundings
from tests.client.fake_transport import FakeTransport
from tests.having import having
from tests.runtime.worlds import client_of_reconcile


def context(**changes: Any) -> Context:
    client = Client(ClientConfig(server="http://fake"), transport=FakeTransport())
    shared: dict[str, Any] = {"controller": "maps", "loop": asyncio.get_running_loop()}
    shared |= {name: changes.pop(name) for name in ("recorder",) if name in changes}
    given: dict[str, Any] = {
        "number": 7,
        "client": client_of_reconcile(client, Views(), "maps", 7),
        "triggers": (Trigger(source="test", verb="why"),),
        "triggers_dropped": 2,
        "attempts": 3,
        **changes,
    }
    return Context(
        Request("default", "a"),
        "maps",
        **given,
        _not_awaited=given["client"]._not_awaited,
        _shared=Surroundings(**shared),
        _key="default/a",
        _seen=None,
        _check=lambda _: None,
    )


async def test_context_exposes_its_arguments() -> None:
    recorder: Any = object()
    made = context(recorder=recorder)
    assert (made.request, made.controller, made.number) == (Request("default", "a"), "maps", 7)
    assert made.triggers == (Trigger(source="test", verb="why"),)
    assert (made.triggers_dropped, made.attempts, made.recorder) == (2, 3, recorder)
    assert not made.cancelled.is_set()
    assert repr(made) == "<Context of maps default/a, reconcile 7, attempt 3>"
    with pytest.raises(RuntimeError, match=r"recorder=EventRecorder"):
        _ = context().recorder
    with pytest.raises(RuntimeError, match=r"ctx\.status"):
        context().status({"metadata": {"name": "a"}})


async def test_context_logger_adds_reconcile_fields_to_extras(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made = context()
    made.logger.info("plain")
    made.logger.info("more", extra={"more": 1, "key": "another"})
    plain, more = (vars(record) for record in caplog.records)
    assert plain["name"] == "deltaloop.runtime.reconcile"
    assert (plain["controller"], plain["key"], plain["reconcile"]) == ("maps", "default/a", 7)
    assert (more["controller"], more["key"], more["reconcile"], more["more"]) == ("maps", "another", 7, 1)
    assert made.logger.process("text", {"exc_info": True})[1]["exc_info"] is True


async def test_wait_on_loop_thread_is_rejected() -> None:
    made = context()

    async def work() -> str:
        await asyncio.sleep(0.0)
        return "done"

    coroutine = work()
    with pytest.raises(RuntimeError, check=having(call="ctx.wait(...)")):
        made.wait(coroutine)
    with pytest.raises(RuntimeError, match=r"already awaited|cannot reuse"):
        coroutine.send(None)  # it was closed, so that Python need not warn of it


@pytest.mark.real_time
async def test_thread_with_own_loop_can_wait() -> None:
    made = context()

    async def work() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def elsewhere() -> asyncio.AbstractEventLoop:
        return made.wait(work())

    assert await asyncio.to_thread(asyncio.run, elsewhere()) is asyncio.get_running_loop()
    assert await asyncio.to_thread(made.wait, work()) is asyncio.get_running_loop()
