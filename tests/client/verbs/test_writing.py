from __future__ import annotations

import json
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.list_options import ListOptions
from deltaloop.client import (
    Client,
    ClientConfig,
    ClientOptions,
    DeleteOptions,
    HttpResponse,
    PatchType,
    ServerWarning,
    WriteOptions,
)
from deltaloop.errors import TransportError
from tests.client.fake_transport import FakeTransport, json_answer, page, pod
from tests.having import having

POD = pod("a", namespace="n")
DRY = WriteOptions(dry_run=True, field_manager="me", field_validation="Strict")
DRY_QUERY = {"dryRun": "All", "fieldManager": "me", "fieldValidation": "Strict"}


def client_over(
    *answers: HttpResponse | Exception,
    options: ClientOptions = ClientOptions(),  # noqa: B008 - immutable
) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    config = ClientConfig(server="http://fake", namespace="mine", user_agent="agent/1 (x)")
    return Client(config, transport=transport, options=options), transport


def sent(transport: FakeTransport) -> tuple[str, str, dict[str, str], Any]:
    request = transport.requests[-1]
    body = None if request.body is None else json.loads(request.body)
    return request.method, request.path, dict(request.query), body


async def test_options_reach_every_write() -> None:
    client, transport = client_over(*[json_answer(POD)] * 5)
    await client.create(kinds.POD, POD, options=DRY)
    await client.update(kinds.POD, POD, options=DRY)
    await client.update_status(kinds.POD, POD, options=DRY)
    await client.patch(kinds.POD, "a", {}, options=DRY)
    await client.apply(kinds.POD, POD, options=DRY)
    assert [dict(request.query) for request in transport.requests] == [DRY_QUERY] * 5


async def test_default_write_has_no_query() -> None:
    client, transport = client_over(json_answer(POD), json_answer(POD))
    await client.create(kinds.POD, POD)
    await client.patch(kinds.POD, "a", {})
    assert [dict(request.query) for request in transport.requests] == [{}, {}]


async def test_write_defaults_of_client_are_sent() -> None:
    options = ClientOptions(field_manager="mine", field_validation="Warn")
    client, transport = client_over(*[json_answer(POD)] * 4, options=options)
    await client.create(kinds.POD, POD)
    assert sent(transport)[2] == {"fieldManager": "mine", "fieldValidation": "Warn"}
    await client.create(kinds.POD, POD, options=WriteOptions(field_manager="other"))
    assert sent(transport)[2] == {"fieldManager": "other", "fieldValidation": "Warn"}
    await client.with_field_manager("third").apply(kinds.POD, POD)
    assert sent(transport)[2] == {"fieldManager": "third", "fieldValidation": "Warn"}
    await client.apply(kinds.POD, POD)
    assert sent(transport)[2] == {"fieldManager": "mine", "fieldValidation": "Warn"}


@pytest.mark.parametrize(
    ("patch", "kind", "content_type"),
    [
        ({"spec": {"x": None}}, PatchType.MERGE, "application/merge-patch+json"),
        ({"spec": {"$patch": "replace"}}, PatchType.STRATEGIC, "application/strategic-merge-patch+json"),
        ([{"op": "remove", "path": "/spec/x"}], PatchType.JSON, "application/json-patch+json"),
    ],
)
async def test_patch_types_have_content_type(patch: Any, kind: PatchType, content_type: str) -> None:
    client, transport = client_over(json_answer(POD))
    assert (await client.patch(kinds.POD, "a", patch, type=kind)).name == "a"
    assert sent(transport)[3] == patch
    assert transport.requests[0].headers["Content-Type"] == content_type


@pytest.mark.parametrize(("patch", "kind"), [([], PatchType.MERGE), ({}, PatchType.JSON), ([], PatchType.STRATEGIC)])
async def test_patch_of_wrong_type_is_rejected(patch: Any, kind: PatchType) -> None:
    client, transport = client_over()
    with pytest.raises(InvalidArgumentError, check=having(argument="patch")):
        await client.patch(kinds.POD, "a", patch, type=kind)
    assert transport.requests == []


async def test_apply() -> None:
    client, transport = client_over(*[json_answer(POD)] * 4)
    fields: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"x": 1}}
    assert (await client.apply(kinds.POD, fields)).name == "a"
    assert sent(transport) == (
        "PATCH",
        "/api/v1/namespaces/mine/pods/a",
        {"fieldManager": "agent"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}},
    )
    assert transport.requests[0].headers["Content-Type"] == "application/apply-patch+yaml"
    await client.apply(kinds.POD, POD, force=True, subresource="status")
    assert sent(transport)[1:3] == ("/api/v1/namespaces/n/pods/a/status", {"fieldManager": "agent", "force": "true"})
    with pytest.raises(MalformedObjectError, check=having(path="metadata.name")):
        await client.apply(kinds.POD, {"metadata": {}})


async def test_delete_collection() -> None:
    client, transport = client_over(page(POD), json_answer({"kind": "Status", "status": "Success"}), page())
    found = await client.delete_collection(
        kinds.POD,
        namespace="n",
        selection=ListOptions(label_selector="a=b"),
        options=DeleteOptions(propagation_policy="Foreground", dry_run=True),
    )
    assert found is not None
    assert [item.name for item in found] == ["a"]
    assert sent(transport) == (
        "DELETE",
        "/api/v1/namespaces/n/pods",
        {"labelSelector": "a=b"},
        {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground", "dryRun": ["All"]},
    )
    assert await client.delete_collection(kinds.POD, namespace="n") is None
    await client.delete_collection(kinds.NODE)
    assert sent(transport)[1] == "/api/v1/nodes"


@pytest.mark.parametrize("namespace", [None, ""])
async def test_delete_collection_requires_namespace(namespace: str | None) -> None:
    client, transport = client_over()
    with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
        await client.delete_collection(kinds.POD, namespace=namespace)
    assert transport.requests == []


async def test_warnings_are_collected_in_block() -> None:
    warned = json_answer(POD, headers=[("Warning", '299 - "unknown field \\"spec.x\\""')])
    client, _ = client_over(warned, warned)
    seen: list[ServerWarning] = []
    await client.with_warnings(seen.append).create(kinds.POD, POD)
    await client.create(kinds.POD, POD)
    assert seen == [ServerWarning('unknown field "spec.x"', "POST", "/api/v1/namespaces/n/pods")]


async def test_warnings_reach_handler_of_client() -> None:
    seen: list[ServerWarning] = []
    warned = json_answer(POD, headers=[("Warning", '299 - "old"')])
    client, _ = client_over(warned, options=ClientOptions(on_warning=seen.append))
    await client.get(kinds.POD, "a")
    assert [warning.text for warning in seen] == ["old"]


WRITES: dict[str, tuple[Any, ...]] = {
    "create": (kinds.POD, POD),
    "update": (kinds.POD, POD),
    "update_status": (kinds.POD, POD),
    "patch": (kinds.POD, "a", {}),
    "apply": (kinds.POD, POD),
    "delete": (kinds.POD, "a"),
    "scale": (kinds.POD, "a", 1),
    "evict": ("a",),
    "create_subresource": (kinds.POD, "a", "binding", {}),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_write_that_may_have_arrived_is_not_retried(verb: str) -> None:
    client, transport = client_over(TransportError("reset", method="X", path="/x", sent=True, cut=True))
    with pytest.raises(TransportError):
        await getattr(client, verb)(*WRITES[verb])
    assert len(transport.requests) == 1


@pytest.mark.parametrize("verb", WRITES)
async def test_unsent_write_is_retried(verb: str) -> None:
    unsent = TransportError("reset", method="X", path="/x", sent=False, cut=True)
    client, transport = client_over(unsent, json_answer(POD))
    await getattr(client, verb)(*WRITES[verb])
    assert transport.sent_at == [0.0, 1.0]
