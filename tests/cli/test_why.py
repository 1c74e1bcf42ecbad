"""``deltaloop why``, and ``deltaloop generate rbac`` from a recorded run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deltaloop.api.kinds import LEASE
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.cli.app import app
from deltaloop.cli.running_program import NoAnswerError, RunningProgram
from deltaloop.cli.why import ask, lines, shard_notes
from deltaloop.client import Client, ClientConfig, ClientOptions
from deltaloop.leaderelection import LeaderElector, LeaseLock
from deltaloop.runtime import Context, Request, controller
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.program.access_file import read_access, save_access
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.health_pages import metrics_page
from deltaloop.runtime.program.health_server import HealthServer
from tests.having import having
from tests.runtime.worlds import CM, until, world


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.real_time
async def test_why_explains_running_program_and_recorded_access_becomes_role(tmp_path: Path) -> None:
    done: list[str] = []

    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        if request.name != "a":
            return
        await ctx.client.patch(CM, "a", {"data": {"seen": "planted"}}, namespace="default")
        done.append(request.key)

    recorded = RecordedAccess()
    async with world() as w:
        config = ClientConfig(server=w.server.url, namespace="default")
        async with (
            Client(config, options=ClientOptions(on_request=recorded.sent)) as client,
            w.running(reconcile, client=client, health=BindAddress()) as manager,
        ):
            await w.put("a")
            await until(lambda: len(done) >= 2)
            address = manager.servers["health"].url.removeprefix("http://")
            shown = await asyncio.to_thread(invoke, "why", "configmap/a", "--address", address)
            assert shown.exit_code == 0, shown.output
            text = shown.output
            assert "maps default/a, reconcile" in text
            assert "  because  informer update ConfigMap default/a" in text
            assert "by self, reconcile" in text
            assert "  wrote    patch v1/ConfigMap default/a" in text
            assert ": data.seen" in text or ": data" in text
            assert "planted" not in text
            shown = await asyncio.to_thread(invoke, "why", "a", "--address", address, "-o", "json")
            assert {run["controller"] for run in json.loads(shown.output)} == {"maps"}
            unknown = await asyncio.to_thread(invoke, "why", "pod/a", "--address", address)
            assert unknown.exit_code == 1
            assert "pod/a in namespace default has no recent reconciles" in unknown.output
    file = tmp_path / "access.json"
    save_access(file, recorded)
    printed = invoke("generate", "rbac", "--from", str(file), "--name", "maps")
    [role] = read_yaml_documents(printed.output)
    assert role["kind"] == "ClusterRole"
    assert role["rules"][0] == {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch", "patch"]}


@pytest.mark.real_time
@pytest.mark.parametrize(("holder", "who"), [("other-1", "the leader is other-1"), ("", "the leader is unknown")])
async def test_why_on_standby_reports_leader(holder: str, who: str) -> None:
    @controller("v1/ConfigMap", name="maps")
    async def reconcile(request: Request, ctx: Context) -> None:
        pass

    async with world() as w:
        if holder:
            spec: dict[str, Any] = {"holderIdentity": holder, "leaseDurationSeconds": 600}
            await w.client.create(LEASE, {"metadata": {"name": "maps"}, "spec": spec}, namespace="default")
        async with Client(ClientConfig(server=w.server.url if holder else "http://127.0.0.1:9")) as client:
            elector = LeaderElector(LeaseLock(client, namespace="default", name="maps", identity="me-1"))
            async with w.running(reconcile, elector=elector, health=BindAddress()) as manager:
                if holder:
                    await until(lambda: elector.leader)
                address = manager.servers["health"].url.removeprefix("http://")
                shown = await asyncio.to_thread(invoke, "why", "a", "--address", address)
                assert shown.exit_code == 1
                assert f"note: this replica is a standby, and {who}." in shown.output
                assert "a in namespace default has no recent reconciles" in shown.output


@pytest.mark.real_time
async def test_unreachable_program_raises_error() -> None:
    async with HealthServer(BindAddress(), {"/explain": metrics_page(lambda: (b"hello", "text/plain"))}) as server:
        with pytest.raises(NoAnswerError, check=having(reason="foreign")):
            await asyncio.to_thread(ask, RunningProgram(server.url), kind="", namespace="default", name="a")
        gone = server.url
    with pytest.raises(NoAnswerError, check=having(reason="unreachable")):
        await asyncio.to_thread(ask, RunningProgram(gone), kind="", namespace="default", name="a")
    async with HealthServer(BindAddress(), {}) as server:
        with pytest.raises(NoAnswerError, check=having(reason="foreign")):
            await asyncio.to_thread(ask, RunningProgram(server.url), kind="", namespace="default", name="a")
    for wrong in ("file:///etc/passwd", "no-port", "127.0.0.1:x"):
        with pytest.raises(NoAnswerError):
            ask(RunningProgram(wrong), kind="", namespace="", name="a")


def test_omitted_details_are_reported() -> None:
    run: dict[str, Any] = {
        "controller": "foo",
        "key": "default/a",
        "reconcile": 7,
        "result": "error",
        "error": "KeyError",
        "secondsAgo": 1.0,
        "seconds": 0.25,
        "attempt": 2,
        "triggers": [],
        "triggersDropped": 3,
        "writes": [
            {
                "verb": "update",
                "kind": "v1/Pod",
                "subresource": "status",
                "key": "default/p",
                "version": "",
                "paths": [],
            },
            {"verb": "patch", "kind": "v1/Pod", "subresource": "", "key": "default/p", "version": "8", "paths": None},
        ],
        "writesDropped": 2,
    }
    assert [*lines([run])] == [
        "foo default/a, reconcile 7: error, KeyError (1.0 s ago, took 0.250 s, attempt 2)",
        "           and 3 more",
        "  wrote    update v1/Pod/status default/p (no change)",
        "  wrote    patch v1/Pod default/p (8): the fields are no longer stored",
        "           and 2 more",
    ]


def test_invalid_why_arguments_are_rejected(tmp_path: Path) -> None:
    assert invoke("why", "foo/").exit_code == 2
    assert invoke("why", "a", "-o", "yaml").exit_code == 2
    assert invoke("generate", "rbac").exit_code == 2
    with pytest.raises(Exception, match="No such file"):
        read_access(tmp_path / "missing.json")
    with pytest.raises(Exception, match="No such file"):
        save_access(tmp_path / "no" / "folder.json", RecordedAccess())
    (tmp_path / "x").write_text("not json")
    with pytest.raises(Exception, match="--record-access FILE"):
        read_access(tmp_path / "x")


def test_equal_triggers_are_one_line() -> None:
    run = {
        "controller": "a",
        "key": "default/b",
        "reconcile": 2,
        "result": "success",
        "error": "",
        "secondsAgo": 1.0,
        "seconds": 0.5,
        "attempt": 1,
        "triggers": ["requeue after", "informer resync", "requeue after"],
        "triggersDropped": 0,
        "writes": [],
        "writesDropped": 0,
    }
    assert list(lines([run])) == [
        "a default/b, reconcile 2: success (1.0 s ago, took 0.500 s, attempt 1)",
        "  because  requeue after (2 times)",
        "  because  informer resync",
    ]


_RUN = {
    "controller": "maps",
    "key": "default/a",
    "reconcile": "r-1",
    "result": "done",
    "error": "",
    "secondsAgo": 1.0,
    "seconds": 0.1,
    "attempt": 1,
    "triggers": ["update"],
    "triggersDropped": 0,
    "writes": [],
    "writesDropped": 0,
}


def test_control_characters_of_explanation_are_escaped() -> None:
    hostile = "x\nerror: forged\x1b[2J\u202e"
    shown = list(lines([{**_RUN, "controller": hostile, "error": hostile, "triggers": [hostile]}]))
    assert len(shown) == 2
    assert not any(character in line for line in shown for character in "\n\x1b\u202e")
    assert "x\\nerror: forged\\x1b[2J\\u202e" in shown[0]


@pytest.mark.parametrize(
    "found", [5, ["text"], [{}], [{**_RUN, "secondsAgo": "soon"}], [{**_RUN, "triggers": 5}], [{**_RUN, "writes": [1]}]]
)
def test_malformed_explanation_raises_error(found: Any) -> None:
    with pytest.raises(NoAnswerError, check=having(reason="foreign")):
        list(lines(found))


def test_reconcile_of_a_sharded_program_names_its_range() -> None:
    assert "in range 40" in next(lines([{**_RUN, "range": "40"}]))
    assert "range" not in next(lines([_RUN]))


def test_notes_name_the_range_of_an_object_and_problems() -> None:
    shard = {"range": "40", "owner": "m1", "member": "m1", "unowned": 0.0, "rangesWithoutOwner": 0}
    assert [*shard_notes(shard, found=True)] == ["range 40 of the object belongs to m1."]
    [other] = shard_notes({**shard, "member": "m2"}, found=False)
    assert "m2" in other
    assert len([*shard_notes({**shard, "waits": True, "rangesWithoutOwner": 2}, found=True)]) == 3
    [missing] = shard_notes({**shard, "owner": "", "unowned": 9.0}, found=True)
    assert "9 s" in missing
