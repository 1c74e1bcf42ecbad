"""What a crash leaves of connections and waits: a harness ends whatever was under way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.testing import (
    CrashMoment,
    Harness,
    StalledError,
    crash_at_every_write,
    crash_exploration,
    embedded_harness,
    run_virtual,
)
from deltaloop.testing.deterministic_loop.processes import Process
from tests.having import having

MAPS = dl.kinds.CONFIG_MAP


async def mark_seen(request: dl.Request, ctx: dl.Context) -> None:
    found = await ctx.client.find(MAPS, request.name, namespace=request.namespace)
    if found is not None and request.name == "a" and not (found.get("data") or {}).get("seen"):
        await ctx.client.patch(MAPS, "a", {"data": {"seen": "yes"}}, namespace=request.namespace)


reconcile = dl.controller(MAPS, writes=[MAPS])(mark_seen)


async def test_webhooks_and_invariants_survive_crashes_which_the_log_counts(caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []

    @dl.validate(MAPS)
    def note(obj: dl.Resource) -> None:
        called.append(obj.name)

    async def scenario(harness: Harness) -> None:
        @harness.invariant
        async def several_at_a_time(client: dl.Client) -> None:
            await asyncio.gather(*(client.list_all(MAPS) for _ in range(3)))

        await harness.start(reconcile, webhooks=[note])
        await harness.client.create(MAPS, {"metadata": {"name": "a"}})
        await harness.settled()
        assert (await harness.client.get(MAPS, "a"))["data"] == {"seen": "yes"}

    with caplog.at_level("INFO", crash_exploration.__name__):
        async with asyncio.timeout(60):
            assert await crash_at_every_write(scenario) == 3
    assert called.count("a") >= 6, "create and patch in each run"
    progress = [each for each in caplog.records if each.name == crash_exploration.__name__]
    assert [(vars(each)["run"], vars(each)["runs"]) for each in progress] == [(2, 3), (3, 3)]


async def test_client_of_test_used_by_program_is_closed() -> None:
    async def scenario(harness: Harness) -> None:
        @dl.controller(MAPS, name="spy", writes=[MAPS])
        async def spy(request: dl.Request, ctx: dl.Context) -> None:
            await asyncio.gather(*(harness.client.list_all(MAPS) for _ in range(3)))
            await mark_seen(request, ctx)

        await harness.start(spy)
        await harness.client.create(MAPS, {"metadata": {"name": "a"}})
        await harness.settled()

    assert await crash_at_every_write(scenario, moments=[CrashMoment.AFTER]) == 2


def test_error_after_crash_contains_crash() -> None:
    runs: list[int] = []

    async def scenario(harness: Harness) -> None:
        await harness.start(reconcile)
        await harness.client.create(MAPS, {"metadata": {"name": "a"}})
        await harness.settled()
        runs.append(len(harness.writes))
        if len(runs) > 1:
            await harness.replicas[0].stop()
            await asyncio.get_running_loop().create_future()

    with pytest.raises(StalledError) as caught:
        run_virtual(crash_at_every_write(scenario))
    (note,) = caught.value.__notes__
    assert f"crashed at write 1 of {runs[0]}" in note
    assert "CrashMoment.BEFORE" in note


def ignore(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None: ...


async def test_crash_before_tls_handshake_closes_socket() -> None:
    context = CertificateAuthority.make().server_context(host="localhost")
    for turns in range(8):
        process = Process("server")
        listening = asyncio.get_running_loop().create_future()

        async def serve(listening: asyncio.Future[int] = listening) -> None:
            server = await asyncio.start_server(ignore, "127.0.0.1", 0, ssl=context)
            listening.set_result(server.sockets[0].getsockname()[1])
            await asyncio.get_running_loop().create_future()

        process.start(serve())
        reader, writer = await asyncio.open_connection("127.0.0.1", await listening)
        for _ in range(turns):
            await asyncio.sleep(0)
        process.crash()
        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.transport.abort()
        process.dispose()


async def test_invariant_continues_after_crash_of_program(deltaloop_harness: Harness) -> None:
    seen: list[str] = []

    @deltaloop_harness.invariant
    async def slow(client: dl.Client) -> None:
        seen.append("begins")
        await asyncio.sleep(5)
        seen.append(str(len(await client.list_all(MAPS))))

    replica = await deltaloop_harness.start(reconcile)
    await deltaloop_harness.client.create(MAPS, {"metadata": {"name": "a"}})
    await deltaloop_harness.advance(1)
    await replica.crash()
    assert seen == ["begins"]
    await deltaloop_harness.advance(5)
    assert seen == ["begins", "1"]


async def test_end_does_not_wait_for_endless_invariant() -> None:
    async with embedded_harness() as harness:

        @harness.invariant
        async def endless(_: dl.Client) -> None:
            await asyncio.get_running_loop().create_future()

        replica = await harness.start(reconcile)
        await harness.client.create(MAPS, {"metadata": {"name": "a"}})
        await harness.advance(1)
        await replica.crash()


@dl.validate(MAPS)
def accept(_: dl.Resource) -> None: ...


@pytest.mark.parametrize("given", [accept, [accept.function], [reconcile]], ids=["one", "function", "controller"])
async def test_webhooks_must_be_a_list_of_webhooks(given: Any, deltaloop_harness: Harness) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="webhooks")):
        await deltaloop_harness.start(webhooks=given)


@pytest.mark.parametrize(
    "given", [[reconcile], reconcile.function, dl.Resource, None], ids=["list", "function", "class", "none"]
)
async def test_start_accepts_controllers_only(given: Any, deltaloop_harness: Harness) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="arguments of start()")):
        await deltaloop_harness.start(given)
    with pytest.raises(InvalidArgumentError, check=having(argument="function")):
        await deltaloop_harness.run([reconcile])  # type: ignore[arg-type]
    assert deltaloop_harness.replicas == []


async def test_failed_start_leaves_no_replica(deltaloop_harness: Harness) -> None:
    @dl.controller("example.com/v1/Missing")
    async def missing(_: dl.Request, __: dl.Context) -> None: ...

    with pytest.raises(UnknownResourceError):
        await deltaloop_harness.start(missing)
    with pytest.raises(InvalidArgumentError):
        await deltaloop_harness.start(reconcile, reconcile)  # both have the same name
    assert deltaloop_harness.replicas == []
    await deltaloop_harness.start(reconcile)
    await deltaloop_harness.settled()
