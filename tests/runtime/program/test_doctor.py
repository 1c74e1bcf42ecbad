"""Ten prepared faults, each of which ``diagnose`` names with its cause."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

import deltaloop as dl
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.cli.doctor import examine
from deltaloop.cli.running_program import RunningProgram
from deltaloop.runtime import BindAddress, DiagnosisKind, HotLoopOptions, Manager
from deltaloop.runtime.program.pages import ACTION_HEADER
from deltaloop.webhooks import StaticCertificate, WebhookAddress, WebhookSet
from deltaloop.webhooks.certificates.targets import targets_in
from deltaloop.webhooks.registering import register, registrations
from tests.runtime.worlds import CM, World, now, until, world
from tests.webhooks.kinds import Database, check
from tests.webhooks.serving import LOCAL, credentials

SECRET_VALUE = "planted-3f9c"


async def only(manager: Manager) -> dl.Diagnosis:
    [found] = await dl.diagnose(manager)
    assert SECRET_VALUE not in json.dumps(await manager.doctor.document())
    return found


async def test_dead_slot_is_named_with_the_line_where_it_waits() -> None:
    @dl.controller(CM, name="maps", workers=2)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        if request.name.startswith("dead"):
            await asyncio.Event().wait()

    async with world() as w, w.running(reconcile) as manager:
        await w.put("dead-1")
        await w.put("dead-2", token=SECRET_VALUE)
        await w.put("third")
        await asyncio.sleep(59.0)
        assert await dl.diagnose(manager) == []
        await asyncio.sleep(2.0)
        found = await only(manager)
        assert (found.kind, found.stuck, found.count) == (DiagnosisKind.HELD_SLOT, True, 2)
        assert found.keys == ("default/dead-1", "default/dead-2")
        assert found.where[-1].endswith("await asyncio.Event().wait()")
        [state] = (await manager.doctor.state()).controllers
        assert state.queue.queued == 1
        assert "add ConfigMap default/dead-1" in state.running[0].triggers[0]
        for run in manager.loops[0].runs.present():
            run.task.cancel()


async def test_back_off_and_parked_keys_are_named_with_the_failing_line() -> None:
    @dl.controller(CM, name="maps", workers=2)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        if request.name == "bad":
            raise dl.TerminalError(f"no retry helps: {SECRET_VALUE}")
        raise ConnectionError(SECRET_VALUE)

    async with world() as w, w.running(reconcile) as manager:
        for name in ("bad", "one", "two"):
            await w.put(name)
        await asyncio.sleep(70.0)
        parked, backoff = await dl.diagnose(manager)
        assert (parked.kind, parked.stuck, parked.keys) == (DiagnosisKind.PARKED_KEY, True, ("default/bad",))
        assert "TerminalError" in parked.cause
        assert (backoff.kind, backoff.stuck, backoff.count) == (DiagnosisKind.BACK_OFF, True, 2)
        assert "ConnectionError" in backoff.cause
        assert "test_doctor.py" in backoff.where[-1]
        state = (await manager.doctor.state()).controllers[0]
        assert all(0 < (key.next_in or 0) < 100 for key in state.failing)
        assert SECRET_VALUE not in json.dumps(await manager.doctor.document())


def nothing(**more: Any) -> dl.Controller:
    @dl.controller(CM, name="maps", **more)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None: ...

    return reconcile


async def test_cache_whose_permission_is_lost_is_named_with_the_error() -> None:
    async with world() as w, w.running(nothing()) as manager:
        assert await dl.diagnose(manager) == []
        w.server.faults.add(Fault(do="refuse", code=403, resources=("configmaps",)))
        w.server.faults.strike_watches(Fault(do="cut"))
        await asyncio.sleep(5.0)
        found = await only(manager)
        assert (found.kind, found.stuck, found.subject) == (DiagnosisKind.STALE_CACHE, True, "v1/ConfigMap")
        assert "ForbiddenError" in found.cause
        assert "generate rbac" in found.remedy


async def test_silent_watch_is_named_before_the_client_gives_it_up() -> None:
    async with world() as w, w.running(nothing()) as manager:
        await asyncio.sleep(70.0)
        assert await dl.diagnose(manager) == []
        w.server.faults.strike_watches(Fault(do="stall"))
        await asyncio.sleep(70.0)
        found = await only(manager)
        assert (found.kind, found.stuck) == (DiagnosisKind.STALE_CACHE, True)
        assert "no byte" in found.cause


HOT = HotLoopOptions(threshold=3)


async def test_hot_loop_is_named_with_its_fields() -> None:
    @dl.controller(CM, name="maps", hot_loops=HOT)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(CM, request.name)
        if found is not None:
            count = int((found.get("data") or {}).get("count", "0"))
            await ctx.client.patch(CM, request.name, {"data": {"count": str(count + 1), "token": SECRET_VALUE}})

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await asyncio.sleep(10.0)
        found = await only(manager)
        assert (found.kind, found.stuck, found.keys) == (DiagnosisKind.HOT_LOOP, True, ("default/a",))
        assert "data.count" in found.cause


async def fight(w: World, name: str) -> None:
    options = dl.WriteOptions(field_manager="helm")
    for _ in range(8):
        await w.client.patch(CM, name, {"data": {"owner": "helm"}}, namespace="default", options=options)
        await asyncio.sleep(1.0)


async def test_fight_is_named_with_the_other_field_manager() -> None:
    @dl.controller(CM, name="maps", hot_loops=HOT)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        found = await ctx.client.find(CM, request.name)
        if found is not None and found.get("data") != {"owner": "maps"}:
            await ctx.client.patch(CM, request.name, {"data": {"owner": "maps"}})

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a", owner="none")
        await fight(w, "a")
        found = await only(manager)
        assert (found.kind, found.stuck) == (DiagnosisKind.FIGHT, True)
        assert "helm and this controller change v1/ConfigMap default/a (data.owner)" in found.cause


async def test_wrong_ca_bundle_is_named_until_it_is_corrected() -> None:
    async with world() as w:
        right, context = credentials()
        wrong = CertificateAuthority.make()
        await w.client.create("apiextensions.k8s.io/v1/CustomResourceDefinition", dl.generate_crd(Database))
        made = registrations(WebhookSet([check]), WebhookAddress(namespace="any", service="any"), name="shop")
        manager = Manager(
            w.client,
            [nothing()],
            webhooks=[check],
            certificates=StaticCertificate(context),
            webhook_targets=targets_in(made),
            options=dl.ManagerOptions(webhooks=LOCAL),
        )
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(3.0)
        for authority, expected in ((wrong, ["self-signed certificate", "unable to get"]), (right, [])):
            await register_with(w, manager, authority)
            await asyncio.sleep(11.0)
            found = await dl.diagnose(manager)
            assert [each.kind for each in found] == ([DiagnosisKind.WEBHOOK] if expected else [])
            assert all(each.stuck and "the API server rejects" in each.cause for each in found)
        manager.stop()
        await task


async def register_with(w: World, manager: Manager, authority: CertificateAuthority) -> None:
    assert manager.webhook_server is not None
    address = WebhookAddress(url=manager.webhook_server.url, ca_bundle=base64.b64encode(authority.ca_pem).decode())
    await register(w.client, registrations(WebhookSet([check]), address, name="shop"))


@pytest.mark.real_time
async def test_blocked_loop_is_named_while_it_blocks_and_other_requests_wait() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @dl.controller(CM, name="maps")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        begun.set()
        go_on.wait(60.0)

    async with world() as w, w.running(reconcile, health=BindAddress(), loop_block_threshold=0.2) as manager:
        asking = asyncio.create_task(asyncio.to_thread(_ask_during_block, manager.servers["health"].url, begun, go_on))
        await w.put("a")
        during, probed = await asking
        [blocked] = during["diagnoses"]
        assert (blocked["kind"], blocked["stuck"]) == ("blocked-loop", True)
        assert blocked["subject"] == "reconcile maps default/a"
        assert blocked["where"][-1].endswith("go_on.wait(60.0)")
        assert probed.startswith(b"HTTP/1.1 200 OK")
        seen = (await manager.doctor.state()).blocked
        assert seen is not None
        assert seen.ended_ago is not None


def _ask_during_block(url: str, begun: threading.Event, go_on: threading.Event) -> tuple[dict[str, Any], bytes]:
    """Return the diagnosis during a block, and the response to a probe, which waits until the block ends."""
    program, place = RunningProgram(url), urlsplit(url)
    try:
        assert begun.wait(60.0)
        while not (during := examine(program))["diagnoses"] or not during["diagnoses"][0]["where"]:
            pass
        with socket.create_connection((place.hostname, place.port), timeout=0.2) as probe:
            probe.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            with pytest.raises(TimeoutError):
                probe.recv(1000)
            go_on.set()
            probe.settimeout(60.0)
            return during, probe.recv(1000)
    finally:
        go_on.set()


@pytest.mark.real_time
async def test_plain_function_is_shown_with_the_line_in_its_thread() -> None:
    begun, go_on = threading.Event(), threading.Event()

    @dl.controller(CM, name="maps")
    def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        begun.set()
        go_on.wait(10.0)

    async with world() as w, w.running(reconcile) as manager:
        await w.put("a")
        await until(begun.is_set)
        [state] = (await manager.doctor.state()).controllers
        go_on.set()
        assert state.running[0].where[-1].endswith("go_on.wait(10.0)")


async def test_growing_queue_is_sampled() -> None:
    @dl.controller(CM, name="maps")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        await asyncio.sleep(0.1)

    async with world() as w, w.running(reconcile) as manager:
        queue = manager.loops[0].queue
        for number in range(150):
            queue.add(f"default/{number}")
        growing = asyncio.create_task(_add_more(queue))
        found = await only(manager)
        assert (found.kind, found.stuck) == (DiagnosisKind.GROWING_QUEUE, False)
        await growing
        manager.loops[0].pause()
        assert [each.kind for each in await dl.diagnose(manager)] == [DiagnosisKind.PAUSED]


async def _add_more(queue: dl.RateLimitingQueue[str]) -> None:
    for number in range(50):
        queue.add(f"other/{number}")
        await asyncio.sleep(0.02)


async def test_actions_change_controllers_and_are_recorded() -> None:
    done: list[str] = []

    @dl.controller(CM, name="maps")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        done.append(request.name)
        if request.name == "bad":
            raise dl.TerminalError("no")

    async with world() as w, dl.EventRecorder(w.client, component="maps", clock=now) as recorder:
        actions = {"doctor_actions": True, "health": BindAddress(), "recorder": recorder}
        async with w.running(reconcile, **actions) as manager:
            for name in ("a", "bad"):
                await w.put(name)
            await asyncio.sleep(1.0)
            done.clear()
            async with aiohttp.ClientSession(manager.servers["health"].url) as session:
                assert await act(session, "reconcile", "default/a") == (200, 1)
                assert await act(session, "reconcile", "default/none") == (404, None)
                assert await act(session, "retry", "default/a") == (404, None)
                assert await act(session, "retry", "default/bad") == (200, 1)
                await asyncio.sleep(0.1)
                assert done == ["a", "bad"]
                assert await act(session, "drop", "default/bad") == (200, 1)
                assert await act(session, "pause") == (200, 0)
                assert await act(session, "reconcile-all") == (200, 2)
                await asyncio.sleep(1.0)
                assert (done, len(manager.loops[0].queue)) == (["a", "bad"], 2)
                assert await act(session, "resume") == (200, 0)
                await asyncio.sleep(0.1)
                assert done == ["a", "bad", "a", "bad"]
                assert await act(session, "explode") == (400, None)
                assert await act(session, "pause", **{"Sec-Fetch-Site": "cross-site"}) == (403, None)
                assert await act(session, "pause", Origin="http://evil.example.com") == (403, None)
                assert await act(session, "pause", **{ACTION_HEADER: ""}) == (200, 0)
                async with session.post("/doctor/pause?controller=maps") as answer:
                    assert answer.status == 403, "a form of another site cannot send the header"
                async with session.post("/readyz") as answer:
                    assert answer.status == 405
        await recorder.flush(5.0)
        events = [event async for event in w.client.iter_list("v1/Event", namespace="default")]
        reasons = {event["reason"]: event["involvedObject"]["name"] for event in events}
        assert reasons["ReconcileRequested"] == "a"
        assert reasons["ParkedKeyDropped"] == "bad"
        assert {"ControllerPaused", "ControllerResumed", "ReconcileAllRequested"} <= set(reasons)


async def act(session: aiohttp.ClientSession, action: str, key: str = "", **headers: str) -> tuple[int, int | None]:
    query = {"controller": "maps", "key": key}
    async with session.post(f"/doctor/{action}", params=query, headers={ACTION_HEADER: "1", **headers}) as answer:
        return answer.status, (await answer.json())["keys"] if answer.status == 200 else None


async def test_actions_are_rejected_by_default() -> None:
    async with (
        world() as w,
        w.running(nothing(), health=BindAddress()) as manager,
        aiohttp.ClientSession(manager.servers["health"].url) as session,
    ):
        assert await act(session, "pause") == (405, None)
        async with session.get("/doctor") as answer:
            assert (await answer.json())["actions"] is False
