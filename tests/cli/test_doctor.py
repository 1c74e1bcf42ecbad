"""``deltaloop doctor``: text, exit codes, and queries through the API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

import deltaloop as dl
from deltaloop.apiserver import ServerOptions
from deltaloop.cli import kubectl_plugin
from deltaloop.cli.app import app
from deltaloop.cli.doctor import lines
from deltaloop.cli.running_program import NoAnswerError, RunningProgram
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.pages import TOKEN_HEADER
from tests.having import having
from tests.runtime.worlds import CM, until, world
from tests.servers import api_server


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


@dl.controller(CM, name="maps")
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    if request.name == "bad":
        raise dl.TerminalError("planted")


@pytest.mark.real_time
async def test_exit_code_is_one_while_a_key_is_parked() -> None:
    async with world() as w, w.running(reconcile, health=BindAddress(), doctor_actions=True) as manager:
        address = manager.servers["health"].url
        shown = await asyncio.to_thread(invoke, "--address", address)
        assert (shown.exit_code, shown.output) == (0, "nothing is stuck: 1 controller, 1 cache\n")
        await w.put("bad")
        await until(lambda: manager.loops[0].queue.statistics().parked)
        shown = await asyncio.to_thread(invoke, "--address", address)
        assert shown.exit_code == 1
        first, subject, *_, remedy = shown.output.splitlines()
        assert (first, subject[:29]) == ("1 stuck, 0 to watch", "parked-key: maps default/bad ")
        assert remedy.startswith("  remedy: ")
        assert "planted" not in shown.output
        shown = await asyncio.to_thread(invoke, "--address", address, "-o", "json")
        assert (shown.exit_code, json.loads(shown.output)["diagnoses"][0]["keys"]) == (1, ["default/bad"])
        shown = await asyncio.to_thread(invoke, "drop", "maps", "default/bad", "--address", address)
        assert (shown.exit_code, shown.output) == (0, "drop maps default/bad: done\n")
        shown = await asyncio.to_thread(invoke, "drop", "maps", "default/bad", "--address", address)
        assert isinstance(shown.exception, NoAnswerError)


def test_many_diagnoses_have_at_most_20_lines() -> None:
    each: dict[str, object] = {
        "kind": "held-slot", "stuck": True, "subject": "maps default/a\x1b[2J", "cause": "c", "seconds": 7300.0,
        "where": ["a.py:1 in f", "b.py:2 in g"], "remedy": "r",
    }  # fmt: skip
    shown = list(lines({"leadership": "standby", "leader": "", "stuck": True, "diagnoses": [each] * 30}))
    assert len(shown) <= 20
    assert shown[2] == "held-slot: maps default/a\\x1b[2J for 2 h"
    assert shown[4] == "  at b.py:2 in g"
    assert shown[-1] == "and 26 more, shown by --output json"


@pytest.mark.parametrize("place", ["web", "a/b/c", "ns/", "ns/web:x"])
def test_invalid_place_of_a_pod_is_rejected(place: str) -> None:
    with pytest.raises(NoAnswerError, check=having(reason="address")):
        RunningProgram(pod=place).ask("/doctor", {})


@asynccontextmanager
async def proxying(server: str, token: str, health: str) -> AsyncGenerator[str]:
    """Yield the URL of an API server that also forwards requests to a Pod, without the credentials of the user."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False))

    async def forward(request: web.Request) -> web.Response:
        path, headers = request.path_qs, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        base, _, rest = path.partition("/pods/http:maps-0:8081/proxy")
        target = f"{server}{path}"
        if rest and base == "/api/v1/namespaces/default":
            headers = {name: each for name, each in request.headers.items() if name != "Authorization"}
            target, headers["Host"] = f"{health}{rest}", "10.0.0.7:8081"
        async with session.request(request.method, target, data=await request.read(), headers=headers) as answer:
            return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        await session.close()


@pytest.mark.real_time
async def test_pod_is_queried_through_the_api_server_if_rbac_allows_it(tmp_path: Path) -> None:
    async with api_server(ServerOptions(controllers=frozenset(), authorization_mode="RBAC")) as server:
        kubeconfig = tmp_path / "admin"
        kubeconfig.write_text(json.dumps(server.kubeconfig()))
        async with dl.connect(kubeconfig=kubeconfig, namespace="default") as client:
            await client.create("v1/ServiceAccount", {"metadata": {"name": "maps"}})
            spec = {"serviceAccountName": "maps", "containers": [{"name": "maps", "image": "maps"}]}
            await client.create("v1/Pod", {"metadata": {"name": "maps-0"}, "spec": spec})
            await client.patch("v1/Pod", "maps-0", {"status": {"phase": "Running"}}, subresource="status")
            lease = {"metadata": {"name": "maps"}, "spec": {"holderIdentity": "maps-0_1", "leaseDurationSeconds": 9}}
            await client.create("coordination.k8s.io/v1/Lease", lease)
            options = dl.ManagerOptions(health=BindAddress(), preflight=False)
            manager = dl.Manager(client, [reconcile], options=options)
            task = asyncio.create_task(manager.run())
            await until(lambda: all(each.ok for each in manager.readiness()))
            async with proxying(server.url, server.token.reveal(), manager.servers["health"].url) as url:
                user = tmp_path / "user"
                user.write_text(json.dumps(_kubeconfig(url)))
                program = RunningProgram(lease="default/maps", kubeconfig=user)
                status, body = await asyncio.to_thread(program.ask, "/doctor", {})
                assert (status, b"RBAC" in body) == (403, True)
                await _allow(client)
                for place in ("--lease=default/maps", "--pod=default/maps-0:8081"):
                    shown = await asyncio.to_thread(invoke, place, "--kubeconfig", str(user))
                    assert shown.output == "nothing is stuck: 1 controller, 1 cache\n", shown.output
                flags = ["-n", "default", "--kubeconfig", str(user), "--context", "user"]
                plugin = await asyncio.to_thread(
                    CliRunner().invoke, kubectl_plugin.app, ["doctor", "--program", "maps", *flags]
                )
                assert plugin.output == "nothing is stuck: 1 controller, 1 cache\n"
                status, body = await asyncio.to_thread(program.ask, "/doctor/pause", {}, method="POST")
                assert status == 405
            headers = {"Host": "10.0.0.7:8081", TOKEN_HEADER: server.token.reveal()}
            direct = aiohttp.ClientSession(manager.servers["health"].url, headers=headers)
            async with direct as session, session.get("/doctor") as answer:
                assert answer.status == 403, "an ordinary token must not be accepted"
            manager.stop()
            await task


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "user",
        "contexts": [{"name": "user", "context": {"cluster": "user", "user": "user"}}],
        "clusters": [{"name": "user", "cluster": {"server": url}}],
        "users": [{"name": "user", "user": {}}],
    }


async def _allow(client: dl.Client) -> None:
    rules = [{"nonResourceURLs": ["/doctor"], "verbs": ["get"]}]
    rbac = "rbac.authorization.k8s.io"
    await client.create(f"{rbac}/v1/ClusterRole", {"metadata": {"name": "doctor"}, "rules": rules})
    binding = {
        "metadata": {"name": "doctor"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "doctor"},
        "subjects": [{"kind": "ServiceAccount", "name": "maps", "namespace": "default"}],
    }
    await client.create(f"{rbac}/v1/ClusterRoleBinding", binding)
