"""Every verb against the embedded server: two implementations that meet on the wire only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from deltaloop import wait
from deltaloop.api import kinds
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import (
    BadRequestError,
    ConflictError,
    ExpiredError,
    InvalidError,
    NotFoundError,
)
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig, ClientOptions, DeleteOptions, PatchType, WriteOptions, connect
from deltaloop.errors import WaitTimeoutError
from tests.client.fake_transport import logged
from tests.having import having
from tests.servers import api_server

pytestmark = [pytest.mark.real_time]

CM = kinds.CONFIG_MAP
SAMPLE_CRD = Path(__file__).parents[2] / "examples" / "sample_controller" / "crd.yaml"
FOO: ResourceType[Resource] = ResourceType("samples.deltaloop.dev", "v1alpha1", "Foo", "foos")
PODS_OWN: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
WIDGET_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                },
            }
        ],
    },
}


@asynccontextmanager
async def served(**options: Any) -> AsyncGenerator[Client, None]:
    """A client of a fresh server, over plain HTTP."""
    server_options = ServerOptions(insecure_http=True, controllers=frozenset(), **options)
    async with api_server(server_options) as server, Client(ClientConfig(server=server.url)) as client:
        yield client


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "x"}}, "data": data}


async def test_client_works_over_tls_with_token() -> None:
    async with ApiServer() as server, connect(kubeconfig=server.kubeconfig()) as client:
        made = await client.create(CM, config_map("a", k="v"))
        assert (await client.get("configmaps", "a")).resource_version == made.resource_version
        assert [item.name for item in await client.list(CM, namespace="default")] == ["a"]


async def test_object_is_created_edited_and_deleted() -> None:
    async with served() as client:
        made = await client.create(CM, config_map("a", k="v"))
        fields = made.edit()
        fields["data"]["k"] = "w"
        changed = await client.update(CM, fields)
        with pytest.raises(ConflictError):
            await client.update(CM, fields)
        with pytest.raises(ConflictError):
            await client.delete(CM, "a", options=DeleteOptions(resource_version=made.resource_version))
        with pytest.raises(ConflictError):
            await client.delete(CM, "a", options=DeleteOptions(uid="another"))
        await client.delete(CM, "a", options=DeleteOptions(uid=made.uid, resource_version=changed.resource_version))
        with pytest.raises(NotFoundError):
            await client.get(CM, "a")


async def test_all_patch_types_work() -> None:
    async with served() as client:
        await client.create(CM, config_map("a", k="v", gone="x"))
        merged = await client.patch(CM, "a", {"data": {"k": "w", "gone": None}})
        assert merged["data"] == {"k": "w"}
        operations = [{"op": "test", "path": "/data/k", "value": "w"}, {"op": "add", "path": "/data/l", "value": "m"}]
        added = await client.patch(CM, "a", operations, type=PatchType.JSON)
        assert added["data"] == {"k": "w", "l": "m"}
        with pytest.raises(InvalidError):
            await client.patch(CM, "a", [{"op": "test", "path": "/data/k", "value": "other"}], type=PatchType.JSON)
        pod: dict[str, Any] = {
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": n, "image": "x"} for n in ("a", "b")]},
        }
        await client.create(kinds.POD, pod)
        merge_by_name = {"spec": {"containers": [{"name": "b", "image": "y"}]}}
        both = await client.patch(kinds.POD, "p", merge_by_name, type=PatchType.STRATEGIC)
        assert [(each["name"], each["image"]) for each in both["spec"]["containers"]] == [("a", "x"), ("b", "y")]


async def test_dry_runs_store_nothing() -> None:
    dry = WriteOptions(dry_run=True)
    async with served() as client:
        made = await client.create(CM, config_map("a", k="v"), options=dry)
        assert made.uid
        with pytest.raises(NotFoundError):
            await client.get(CM, "a")
        stored = await client.create(CM, config_map("a", k="v"))
        written: dict[str, Any] = stored.edit() | {"data": {"k": "w"}}
        await client.update(CM, written, options=dry)
        await client.patch(CM, "a", {"data": {"k": "w"}}, options=dry)
        await client.delete(CM, "a", options=DeleteOptions(dry_run=True))
        assert await client.get(CM, "a") == stored


async def test_delete_collection() -> None:
    async with served() as client:
        for name in "abc":
            await client.create(CM, config_map(name))
        await client.create(CM, {"metadata": {"name": "d"}})
        found = await client.delete_collection(CM, namespace="default", selection=ListOptions(label_selector="app=x"))
        assert found is not None
        assert [item.name for item in found] == ["a", "b", "c"]
        assert [item.name for item in await client.list(CM)] == ["d"]


async def test_paged_lists_and_full_list_after_expiry() -> None:
    async with served(window=10) as client:
        for number in range(30):
            await client.create(CM, config_map(f"c{number:02d}"))
        names = [f"c{number:02d}" for number in range(30)]
        assert [item.name for item in await client.list_all(CM, page_size=7)] == names
        async with aclosing(client.iter_list(CM, page_size=7)) as items:
            assert [item.name async for item in items] == names
        first = await client.list(CM, options=ListOptions(limit=7))
        assert (len(first), first.remaining_item_count) == (7, 23)
        for _ in range(30):
            await client.patch(CM, "c00", {"data": {"n": str(_)}})
        with pytest.raises(ExpiredError):
            await client.list(CM, options=ListOptions(limit=7, continue_=first.continue_))


async def test_large_list_is_decoded_while_it_arrives() -> None:
    async with served() as client:
        text = "x" * 20_000
        for number in range(150):
            await client.create(CM, config_map(f"c{number:03d}", text=text))
        found = await client.list(CM)
        assert len(found) == 150
        assert all(item["data"]["text"] == text for item in found)


async def test_discovery_and_a_new_kind() -> None:
    async with served() as client:
        for name in ("po", "Pod", "pod", "pods", "pods.v1.", "v1/Pod"):
            assert await client.resource(name) == kinds.POD
        assert await client.resource("deployments.v1.apps") == kinds.DEPLOYMENT
        with pytest.raises(UnknownResourceError):
            await client.list("wd")
        await client.create(kinds.CUSTOM_RESOURCE_DEFINITION, WIDGET_CRD)
        await client.wait_for(kinds.CUSTOM_RESOURCE_DEFINITION, "widgets.example.com", wait.established())
        await client.create("wd", {"metadata": {"name": "w"}, "spec": {"size": 1}})
        assert [item.name for item in await client.list("widgets.example.com")] == ["w"]
        served_widget = next(
            entry for entry in (await client.resources()).resources if entry.resource_type.kind == "Widget"
        )
        assert set(served_widget.subresources) >= {"status", "scale"}


async def test_scale_and_status() -> None:
    widget = ResourceType[Resource].untyped("example.com/v1", "Widget", "widgets")
    async with served() as client:
        await client.create(kinds.CUSTOM_RESOURCE_DEFINITION, WIDGET_CRD)
        await client.wait_for("customresourcedefinitions", "widgets.example.com", wait.established())
        await client.create(widget, {"metadata": {"name": "w"}, "spec": {"size": 1}})
        assert (await client.get_scale(widget, "w"))["spec"]["replicas"] == 1
        scaled = await client.scale("wd", "w", 4)
        assert scaled["spec"]["replicas"] == 4
        fields = (await client.get(widget, "w")).edit()
        assert fields["spec"]["size"] == 4
        fields["status"] = {"size": 4}
        await client.update_status(widget, fields)
        assert (await client.get(widget, "w", subresource="status"))["status"]["size"] == 4
        with pytest.raises(ConflictError):
            await client.scale(widget, "w", 5, resource_version="1")


async def test_waiting() -> None:
    async with served() as client:

        async def act() -> None:
            await asyncio.sleep(0.05)
            await client.create(CM, config_map("a"))
            await asyncio.sleep(0.05)
            await client.patch(CM, "a", {"data": {"phase": "done"}})
            await asyncio.sleep(0.05)
            await client.delete(CM, "a")

        acting = asyncio.create_task(act())
        assert (await client.wait_for(CM, "a", wait.created(), timeout=10)).name == "a"
        done = await client.wait_for(CM, "a", wait.field_value("data.phase", "done"), timeout=10)
        assert done["data"]["phase"] == "done"
        await client.wait_for(CM, "a", wait.deleted(), timeout=10)
        await acting
        with pytest.raises(WaitTimeoutError, check=having(condition="creation", last_seen="the object does not exist")):
            await client.wait_for(CM, "a", wait.created(), timeout=0.1)


async def test_wait_for_deletion_ends_when_object_is_recreated() -> None:
    async with served() as client:
        await client.create(CM, config_map("a"))
        waiting = asyncio.create_task(client.wait_for(CM, "a", wait.deleted(), timeout=10))
        await asyncio.sleep(0.1)
        await client.delete(CM, "a")
        await client.create(CM, config_map("a"))
        await waiting


async def test_requests_are_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    seen: list[tuple[str, str]] = []

    class Counted:
        def request_done(self, *, code: str, method: str, host: str) -> None:
            seen.append((code, method))

        def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
            assert host.startswith("127.0.0.1:")

        def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None: ...

        def request_retried(self, *, code: str, verb: str, host: str) -> None: ...

    async with (
        ApiServer(ServerOptions(insecure_http=True)) as server,
        Client(ClientConfig(server=server.url), options=ClientOptions(metrics=Counted())) as client,
    ):
        await client.create(kinds.SECRET, {"metadata": {"name": "s"}, "stringData": {"password": "s3cret"}})
        await client.list(kinds.SECRET)
        with pytest.raises(NotFoundError):
            await client.delete(kinds.SECRET, "other")
    assert seen == [("201", "POST"), ("200", "GET"), ("404", "DELETE")]
    assert [record.__dict__.get("status") for record in logged(caplog)] == [201, 200, 404]
    assert "s3cret" not in repr([record.__dict__ for record in logged(caplog)])


async def test_apply_keeps_every_character() -> None:
    """A server reads what is applied as YAML, which folds some characters within a string and refuses others."""
    every = (
        "".join(map(chr, range(0xA1))).replace("\x00", "")
        + " \u2028 \u2029 \x85\x85 \ufeff\ufffe\uffff\U0001f600\U0010ffff"
    )
    async with served() as client:
        applied = await client.apply(CM, {"metadata": {"name": "a"}, "data": {"k": every}})
        assert applied["data"]["k"] == every
        made = await client.create(CM, {"metadata": {"name": "b"}, "data": {"k": every}})
        assert made["data"]["k"] == every


async def test_apply() -> None:
    mine = WriteOptions(field_manager="me")
    async with served() as client:
        await client.create(CM, config_map("a", k="v"))
        applied = await client.apply(CM, {"metadata": {"name": "a"}, "data": {"l": "m"}}, options=mine)
        assert applied["data"] == {"k": "v", "l": "m"}
        theirs: dict[str, Any] = {"metadata": {"name": "a"}, "data": {"l": "n"}}
        with pytest.raises(ConflictError):
            await client.apply(CM, theirs, options=WriteOptions(field_manager="other"))
        taken = await client.apply(CM, theirs, force=True, options=WriteOptions(field_manager="other"))
        assert taken["data"]["l"] == "n"


# --- What the embedded server may not serve yet: skipped there, with its reason, and never faked ---


async def test_eviction() -> None:
    async with served() as client:
        await client.create(kinds.POD, PODS_OWN)
        await client.evict("p")
        await client.wait_for(kinds.POD, "p", wait.deleted(), timeout=5)
        with pytest.raises(NotFoundError):
            await client.evict("p")


async def test_logs() -> None:
    """The server runs no containers, and says so as a server without a kubelet: the client's errors are exact."""
    async with served() as client:
        with pytest.raises(NotFoundError, match='pods "p" not found'):
            async with client.logs("p"):
                raise AssertionError
        await client.create(kinds.POD, PODS_OWN)
        async with client.logs("p") as log:
            assert [line async for line in log] == [], "a pod without a node has written nothing"
        body: dict[str, Any] = PODS_OWN | {"metadata": {"name": "q"}, "spec": {**PODS_OWN["spec"], "nodeName": "n"}}
        await client.create(kinds.POD, body)
        with pytest.raises(NotFoundError, match='nodes "n" not found'):
            async with client.logs("q"):
                raise AssertionError


async def test_strict_field_validation_of_a_custom_resource() -> None:
    """Those of built-in kinds are not validated by the embedded server (docs/reference/embedded-server.md)."""
    strict = WriteOptions(field_validation="Strict")
    crd = read_yaml(SAMPLE_CRD.read_text(), source=SAMPLE_CRD.name)
    foo = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"deploymentName": "a", "unknown": 1}}
    async with served() as client:
        await client.create(kinds.CUSTOM_RESOURCE_DEFINITION, crd)
        with pytest.raises(BadRequestError, match=r'unknown field "spec\.unknown"'):
            await client.create(FOO, foo, options=strict)
        made = await client.create(FOO, foo)
        assert "unknown" not in made["spec"]
