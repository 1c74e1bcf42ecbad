"""A custom resource definition as large as the largest that are published, with all that they use.

``lab/interop/go_client/test_published_crds.py`` does the same with those themselves (``make -C lab test-go``).
"""

from __future__ import annotations

import json
from typing import Any

from tests.apiserver.serving import CRDS, serving

SITES = "/apis/large.example.com/v1/namespaces/default/sites"
DESCRIPTION = "What the field is for, in the words of its authors, who had a lot to say about it. " * 4
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE])?$",
    "x-kubernetes-int-or-string": True,
}


def described(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": DESCRIPTION, **schema}


def struct(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: described(each) for name, each in properties.items()}, **more}


def part(depth: int) -> dict[str, Any]:
    """Return a schema like that of a container in a pod, and ``depth`` more of them below it."""
    port = struct(
        {
            "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
            "protocol": {"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
        },
        required=["port"],
    )
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]}
    properties: dict[str, Any] = {
        "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"},
        "mode": {"type": "string", "default": "auto", "enum": ["auto", "on", "off"]},
        "ports": {"type": "array", "items": port, **keyed},
        "hosts": {"type": "array", "items": {"type": "string"}, "maxItems": 16, "x-kubernetes-list-type": "set"},
        "limits": {"type": "object", "additionalProperties": QUANTITY},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "since": {"type": "string", "format": "date-time", "nullable": True},
        "weight": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "default": 1},
        "source": struct(
            {"inline": {"type": "string"}, "secretName": {"type": "string"}},
            oneOf=[{"required": ["inline"]}, {"required": ["secretName"]}],
        ),
    }
    if depth:
        properties["main"] = part(depth - 1)
        properties["others"] = {"type": "array", "items": part(depth - 1)}
    return struct(properties)


def site_crd() -> dict[str, Any]:
    spec = struct({f"part{number}": part(2) for number in range(8)}, required=["part0"])
    schema = struct({"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}})
    schema["properties"] |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    versions: list[dict[str, Any]] = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for name in ("v1", "v1beta1")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.large.example.com"},
        "spec": {
            "group": "large.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Site", "plural": "sites"},
            "versions": versions,
        },
    }


def site(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "large.example.com/v1", "kind": "Site", "metadata": {"name": name}, "spec": spec}


async def test_large_crd_defaults_prunes_and_validates() -> None:
    crd = site_crd()
    assert len(json.dumps(crd)) > 500_000
    async with serving() as on:
        made = await on.call.created(CRDS, crd)
        assert made.json["spec"]["versions"] == crd["spec"]["versions"]
        deepest = {"ports": [{"port": 80}], "raw": {"any": {"thing": 1}}, "limits": {"cpu": "100m", "memory": 5}}
        body = site("a", part0={"main": {"others": [{**deepest, "bogus": 1}]}, "since": None})
        made = await on.call.created(SITES, body)
        defaults = {"mode": "auto", "weight": 1}
        filled = {**deepest, **defaults, "ports": [{"port": 80, "protocol": "TCP"}]}
        expected = {"main": {"others": [filled], **defaults}, "since": None, **defaults}
        assert made.json["spec"] == {"part0": expected}
        assert 'unknown field \\"spec.part0.main.others[0].bogus\\"' in made.headers["Warning"]
        older = await on.call.get(f"{SITES.replace('/v1/', '/v1beta1/')}/a")
        assert older.json["spec"] == made.json["spec"]
        wrong = {
            "ports": [{"port": 0}, {"port": 8080}, {"port": 8080, "protocol": "TCP"}],
            "hosts": ["a", "a"],
            "limits": {"cpu": "much"},
            "source": {"inline": "x", "secretName": "y"},
            "since": "yesterday",
            "weight": 0,
        }
        refused = await on.call.post(SITES, site("b", part1={"main": {"others": [wrong]}}))
        refused.refuses(422, "Invalid")
        place = "spec.part1.main.others[0]"
        assert sorted({cause["field"] for cause in refused.json["details"]["causes"]}) == [
            "<nil>",  # the source, which has both: the real server names no field for oneOf
            "spec.part0",
            f"{place}.hosts[1]",
            f"{place}.limits.cpu",
            f"{place}.ports[0].port",
            f"{place}.ports[2]",
            f"{place}.since",
            f"{place}.weight",
        ]
