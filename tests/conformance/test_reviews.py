"""What webhooks are shown of a write, and what they may say of its field managers.

Source: apiserver pkg/endpoints/handlers/create.go, update.go, patch.go, fieldmanager/admission.go.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, config_map, conformance, deployment, pod
from tests.conformance.webhook_server import Review, answer, patched, warnings, webhook_server

_RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps", "*/status"]}]


def _owned(obj: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return who owns which of an object's fields, the keys of its data among them."""
    found: list[tuple[str, ...]] = []
    for entry in obj["metadata"].get("managedFields", []):
        assert entry["time"]
        assert entry["fieldsType"] == "FieldsV1"
        fields = entry["fieldsV1"]
        keys = sorted(name for part in ("f:data", "f:status") for name in fields.get(part, {}))
        found.append((entry["manager"], entry["operation"], entry.get("subresource", ""), *keys))
    return found


@conformance("Reviews: a mutating webhook is shown who will own which fields, as a validating one is")
async def test_owners(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/mutate", answer)
        server.on("/look", answer)
        await server.configure("mutating", server.hook("/mutate", rules=_RULES))
        await server.configure("validating", server.hook("/look", rules=_RULES))
        a, applied = f"{api.config_maps}/a", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "y"}}
        await api.created(f"{api.config_maps}?fieldManager=m", config_map("a", {"k": "v"}))
        await api.put(f"{a}?fieldManager=n", config_map("a", {"k": "w"}))
        await api.patch_with(f"{a}?fieldManager=p", "merge-patch+json", {"data": {"p": "v"}})
        await api.apply(a, {**applied, "metadata": {"name": "a"}})
        await api.apply(f"{api.config_maps}/b", {**applied, "metadata": {"name": "b"}})
        await api.created(f"{api.deployments}?fieldManager=m", deployment("d"))
        path = f"{api.deployments}/d/status?fieldManager=s"
        assert (await api.patch_with(path, "merge-patch+json", {"status": {"replicas": 1}})).status == 200
        mutating, validating = (server.requests(path) for path in ("/mutate", "/look"))
        owned = [_owned(review["object"]) for review in mutating]
        assert owned == [_owned(review["object"]) for review in validating]
        before = [("m", "Update", ""), ("n", "Update", "", "f:k")]
        assert owned == [
            [("m", "Update", "", ".", "f:k")],
            before,
            [*before, ("p", "Update", "", "f:p")],
            [("tester", "Apply", "", "f:x"), *before, ("p", "Update", "", "f:p")],
            [("tester", "Apply", "", "f:x")],
            [("m", "Update", ""), ("s", "Update", "status", "f:replicas")],
        ]


@conformance(
    "Reviews: a mutating webhook may change who owns what; what cannot be read of that is lost, with a warning",
    ("removed", {"op": "remove", "path": "/metadata/managedFields"}, [], ""),
    (
        "another manager",
        {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "x"},
        [("x", "Update", "", ".", "f:k")],
        "",
    ),
    (
        "no operation",
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Look"},
        [("m", "Update", "", ".", "f:k")],
        "operation must be `Apply` or `Update`",
    ),
    (
        "no version",
        {"op": "remove", "path": "/metadata/managedFields/0/apiVersion"},
        [("m", "Update", "", ".", "f:k")],
        "apiVersion must not be empty",
    ),
    (
        "no type of fields",
        {"op": "remove", "path": "/metadata/managedFields/0/fieldsType"},
        [("m", "Update", "", ".", "f:k")],
        "missing fieldsType in managed fields entry 0",
    ),
    (
        "another type of fields",
        {"op": "replace", "path": "/metadata/managedFields/0/fieldsType", "value": "x"},
        [("m", "Update", "", ".", "f:k")],
        'invalid fieldsType "x" in managed fields entry 0',
    ),
)
async def test_changed_owners(api: Api, operation: dict[str, Any], owned: list[tuple[str, ...]], words: str) -> None:
    begin = (
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
        "admission controller; please fix your requests: "
    )

    def change(review: Review) -> Review:
        return patched(review, operation, {"op": "add", "path": "/data/added", "value": "v"})

    async with webhook_server(api) as server:
        server.on("/mutate", change)
        await server.configure("mutating", server.hook("/mutate"))
        created = await api.created(f"{api.config_maps}?fieldManager=m", config_map("a", {"k": "v"}))
        assert created.json["data"] == {"k": "v", "added": "v"}
        assert _owned(created.json) == owned
        expected = [f'299 - "{begin}{words}"'] if words else []
        assert [text.replace('\\"', '"') for text in warnings(created)] == expected
        if words:
            changed = await api.put(f"{api.config_maps}/a?fieldManager=m", config_map("a", {"k": "w"}))
            assert _owned(changed.json) == owned
            assert [text.replace('\\"', '"') for text in warnings(changed)] == expected


@conformance("Reviews: an object says of what kind it is, which version it changes, and the name that it has got")
async def test_identity(api: Api) -> None:
    async with webhook_server(api) as server:
        server.on("/mutate", answer)
        server.on("/look", answer)
        await server.configure("mutating", server.hook("/mutate"))
        await server.configure("validating", server.hook("/look"))
        made = (await api.post(api.config_maps, {"metadata": {"generateName": "gen-"}})).json
        name = made["metadata"]["name"]
        updated = await api.put(f"{api.config_maps}/{name}", {"metadata": {"name": name}, "data": {"k": "v"}})
        assert updated.status == 200
        mutating, validating = (server.requests(path) for path in ("/mutate", "/look"))
        for review in (*mutating, *validating):
            assert (review["object"]["apiVersion"], review["object"]["kind"]) == ("v1", "ConfigMap")
        assert [review.get("name") for review in mutating] == [None, name]
        assert [review.get("name") for review in validating] == [name, name]
        versions = [review["object"]["metadata"].get("resourceVersion") for review in (*mutating, *validating)]
        assert versions == [None, None, None, made["metadata"]["resourceVersion"]]


@conformance(
    "Reviews: subresources of another kind: what is sent, with options, and warnings for the client",
    (
        "an eviction",
        "eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}},
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "NAMESPACE"}},
    ),
    (
        "a binding",
        "binding",
        {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}},
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p", "namespace": "NAMESPACE"},
            "target": {"kind": "Node", "name": "n"},
        },
    ),
)
async def test_subresources(api: Api, subresource: str, sent: dict[str, Any], shown: dict[str, Any]) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/*"]}
    await api.created(api.pods, pod("p"))
    async with webhook_server(api) as server:
        server.on("/mutate", lambda review: answer(review, warnings=["first"]))
        server.on("/look", lambda review: answer(review, warnings=["second"]))
        await server.configure("mutating", server.hook("/mutate", rules=[rule]))
        await server.configure("validating", server.hook("/look", rules=[rule]))
        done = await api.post(f"{api.pods}/p/{subresource}?fieldManager=m", sent)
        assert done.status == 201, done.text
        assert warnings(done) == ['299 - "first"', '299 - "second"']
        for path in ("/mutate", "/look"):
            (review,) = server.requests(path)
            review["object"]["metadata"].pop("managedFields", None)
            expected = {**shown, "metadata": {**shown["metadata"], "namespace": api.namespace}}
            assert review["object"] == expected
            assert (review["operation"], review["subResource"], review["name"]) == ("CREATE", subresource, "p")
            assert review["resource"]["resource"] == "pods"
            assert review["options"] == {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "m",
            }


_STREAMS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    (
        "exec",
        "exec?container=c&command=ls&command=-l&stdout=true&stderr=1&tty=false&stdin=0",
        "PodExecOptions",
        {"container": "c", "command": ["ls", "-l"], "stdout": True, "stderr": True},
    ),
    ("attach", "attach?stdin=yes&tty=true", "PodAttachOptions", {"stdin": True, "tty": True}),
    ("portforward", "portforward?ports=80&ports=443", "PodPortForwardOptions", {"ports": [80, 443]}),
    ("proxy", "proxy?path=/x", "PodProxyOptions", {}),
)


@conformance("Reviews: a stream is a CONNECT with its options", *_STREAMS)
async def test_streams(api: Api, path: str, kind: str, options: dict[str, Any]) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/*"]}
    await api.created(api.pods, pod("p"))
    async with webhook_server(api) as server:
        server.on("/deny", lambda review: answer(review, allowed=False, status={"code": 403, "message": "no"}))
        await server.configure("validating", server.hook("/deny", rules=[rule]))
        refused = await api.post(f"{api.pods}/p/{path}", {})
        assert (refused.status, refused.json["message"]) == (
            403,
            'admission webhook "deny.example.com" denied the request: no',
        )
        (review,) = server.requests("/deny")
        assert review["object"] == {"kind": kind, "apiVersion": "v1", **options}
        assert (review["operation"], review["name"], review["options"]) == ("CONNECT", "p", None)
