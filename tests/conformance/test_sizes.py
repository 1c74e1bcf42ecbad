"""Sizes: an object that is too large for one request to etcd is rejected, whatever made it so."""

from __future__ import annotations

import base64
from typing import Any

from tests.apiserver.serving import Answer
from tests.conformance.policy_objects import bind_mutating, constraints, json_patch, mutating_policy
from tests.conformance.target import Api, conformance
from tests.conformance.webhook_server import patched, webhook_server

TOO_LARGE = "etcdserver: request is too large"


def _large(api: Api, name: str, size: int) -> dict[str, Any]:
    return api.widget(name, {"free": {"text": "x" * size}})


def _said(answered: Answer) -> str:
    """Return the message of a 500 without a reason, as errors of etcd are reported."""
    return answered.refuses(500, "")


@conformance("Sizes: a custom resource of 1.5 MiB is too large for etcd, and one of 2 MiB for a message to it")
async def test_create(api: Api) -> None:
    path = await api.widgets()
    assert (await api.post(path, _large(api, "fits", 1_572_000))).status == 201
    assert _said(await api.post(path, _large(api, "etcd", 1_573_000))) == TOO_LARGE
    words = "rpc error: code = ResourceExhausted desc = trying to send message larger than max ("
    assert _said(await api.post(path, _large(api, "message", 2_100_000))).startswith(words)
    assert (await api.post(f"{path}?dryRun=All", _large(api, "dry", 2_100_000))).status == 201


@conformance("Sizes: an update, a patch, an apply or a status that makes an object too large is rejected")
async def test_growth(api: Api) -> None:
    path = await api.widgets()
    stored = (await api.created(path, _large(api, "a", 1_000_000))).json
    more = {"spec": {"free": {"more": "y" * 900_000}}}
    copies = [{"op": "copy", "from": "/spec/free/text", "path": "/spec/free/more"}]
    status = {"status": {"selector": "y" * 900_000}}
    answers = [
        await api.put(f"{path}/a", {**stored, "spec": _large(api, "a", 1_600_000)["spec"]}),
        await api.patch(f"{path}/a", more),
        await api.patch_with(f"{path}/a", "json-patch+json", copies),
        await api.patch(f"{path}/a/status", status),
        await api.apply(f"{path}/a", _large(api, "a", 1_600_000), query="&force=true"),
        await api.apply(f"{path}/b", _large(api, "b", 1_600_000)),
    ]
    assert [_said(each) for each in answers] == [TOO_LARGE] * 6
    assert len((await api.get(f"{path}/a")).json["spec"]["free"]) == 1


@conformance("Sizes: an object loses its managed fields where it would be too large with them")
async def test_managed_fields(api: Api) -> None:
    path = await api.widgets()
    fields = {f"{number:0240}": 1 for number in range(3_300)}
    created = await api.created(path, api.widget("a", {"free": fields}))
    assert "managedFields" not in created.json["metadata"]
    assert _said(await api.apply(f"{path}/b", api.widget("b", {"free": fields}))) == TOO_LARGE


@conformance("Sizes: a built-in kind is measured in the shorter form in which it is stored")
async def test_protobuf(api: Api) -> None:
    created = await api.config_map("a", {"escaped": "\x01" * 400_000})
    assert len(created.body) > 2_000_000


@conformance("Sizes: a mutating policy cannot make an object larger than it may be")
async def test_mutating_policy(api: Api) -> None:
    path = await api.widgets()
    rule = {"apiGroups": [api.group()], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
    copies = "[1, 2, 3, 4, 5, 6, 7, 8].map(i, object.spec.free.text).join()"
    grow = json_patch(f"[JSONPatch{{op: 'add', path: '/spec/free/copies', value: {copies}}}]")
    await bind_mutating(api, mutating_policy(api, "p", grow, matchConstraints=constraints(api, rule)))

    async def small_is_created() -> bool:  # once the policies know the new kind
        return (await api.post(path, _large(api, "small", 2_000))).status == 201

    await api.eventually(small_is_created)
    assert len((await api.get(f"{path}/small")).json["spec"]["free"]["copies"]) == 16_000
    assert _said(await api.post(path, _large(api, "a", 200_000))) == TOO_LARGE
    assert (await api.get(f"{path}/a")).status == 404


@conformance("Sizes: a webhook cannot make an object larger than it may be")
async def test_webhook(api: Api) -> None:
    path = await api.widgets()
    async with webhook_server(api) as server:
        server.on(
            "/grow",
            lambda review: patched(review, {"op": "add", "path": "/spec/free", "value": {"a": "x" * 1_600_000}}),
        )
        rule = {"apiGroups": [api.group()], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
        await server.configure("mutating", server.hook("/grow", rules=[rule]))
        assert _said(await api.post(path, api.widget("a"))) == TOO_LARGE


@conformance("Sizes: the values of a ConfigMap or a Secret have 1 MiB at most")
async def test_data(api: Api) -> None:
    most = 1024 * 1024
    fits = {"data": {"a": "x" * most}}
    assert (await api.post(api.config_maps, {"metadata": {"name": "a"}, **fits})).status == 201
    over = {"data": {"a": "x" * most}, "binaryData": {"b": base64.b64encode(b"x").decode()}}
    refused = await api.post(api.config_maps, {"metadata": {"name": "b"}, **over})
    assert refused.refuses(422, "Invalid") == (
        f'ConfigMap "b" is invalid: []: Too long: may not be more than {most} bytes'
    )
    secrets = f"{api.core}/secrets"
    encoded = [base64.b64encode(b"x" * size).decode() for size in (most, most + 1)]
    assert (await api.post(secrets, {"metadata": {"name": "a"}, "data": {"a": encoded[0]}})).status == 201
    refused = await api.post(secrets, {"metadata": {"name": "b"}, "data": {"a": encoded[1]}})
    assert (
        refused.refuses(422, "Invalid") == f'Secret "b" is invalid: data: Too long: may not be more than {most} bytes'
    )
