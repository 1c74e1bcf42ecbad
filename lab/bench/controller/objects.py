"""The kind that all operators work on: a Greeting has one ConfigMap with its message, and a status that repeats it."""

from __future__ import annotations

from typing import Any, Final

GROUP: Final = "bench.deltaloop.dev"
VERSION: Final = "v1"
NAMESPACE: Final = "default"
GREETINGS: Final = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/greetings"
CONFIG_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
API_VERSION: Final = f"{GROUP}/{VERSION}"

# A status keeps what it does not know, so that kopf can keep there what it remembers of an object.
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "language": {"type": "string"}},
            "required": ["message"],
        },
        "status": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"message": {"type": "string"}, "observedGeneration": {"type": "integer"}},
        },
    },
}
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"greetings.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting", "listKind": "GreetingList"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


def name_of(number: int) -> str:
    """Return the name of the n-th object."""
    return f"greeting-{number:05d}"


def greeting(number: int, message: str) -> dict[str, Any]:
    """Return the n-th object as it is created."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Greeting",
        "metadata": {"name": name_of(number), "namespace": NAMESPACE, "labels": {"app": f"app-{number % 50:02d}"}},
        "spec": {"message": message, "language": "en"},
    }


def is_right(obj: dict[str, Any]) -> bool:
    """Say whether the status repeats the message; every change of a spec has a message of its own."""
    status: dict[str, Any] = obj.get("status") or {}
    return bool(status.get("message") == obj["spec"]["message"])


def mistake(greetings: list[dict[str, Any]], config_maps: list[dict[str, Any]]) -> str:
    """Return what the first object lacks, or nothing: a phase has ended when every one has what it should."""
    owned = {
        reference["uid"]: each
        for each in config_maps
        for reference in each["metadata"].get("ownerReferences", ())
        if reference.get("controller") and reference["kind"] == "Greeting"
    }
    for obj in greetings:
        name = obj["metadata"]["name"]
        if not is_right(obj):
            return f"the status of {name} is {obj.get('status')}, its spec {obj['spec']}"
        child = owned.pop(obj["metadata"]["uid"], None)
        if child is None:
            return f"{name} controls no config map"
        if child.get("data") != {"message": obj["spec"]["message"]}:
            return f"the config map of {name} has {child.get('data')}, its spec {obj['spec']}"
    return f"{len(owned)} config maps have an owner that is gone" if owned else ""
