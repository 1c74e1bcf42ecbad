"""CustomResourceDefinitions for the tests of this folder."""

from __future__ import annotations

from typing import Any

from deltaloop.apiserver.core.crds.definition import crd_resources, crd_status, default_crd
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource

GROUP = "samples.example.com"


def defined(registry: Registry) -> tuple[str, ...]:
    """Return the names of the definitions that a registry serves from."""
    return tuple(sorted({item.type.group_resource for item in registry.resources() if item.codec.says_kind}))


def version(name: str = "v1", *, served: bool = True, storage: bool = True, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def foo_crd(*versions: dict[str, Any], kind: str = "Foo", plural: str = "foos", group: str = GROUP) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": list(versions) or [version()],
        },
    }


def served_foo(**more: Any) -> ServedResource:
    crd = default_crd(foo_crd(version(**more)))
    (served,) = crd_resources({**crd, "status": crd_status(crd, (), now=0.0)})
    return served
