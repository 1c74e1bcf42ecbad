"""The data file: what is in it, and that it is what its sources give."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.json_values import at as at_path
from deltaloop.api.json_values import mapping
from deltaloop.apiserver.builtin_tables import builtin_tables
from deltaloop.schemas.completing import prune
from deltaloop.schemas.object_meta import OBJECT_META_STRUCTS
from deltaloop.schemas.types import TypeNode
from tests.apiserver.core.built_in import built_in_schema

ROOT = Path(__file__).parents[4]
_SOURCES = importlib.util.find_spec("kubernetes_validate") is not None


@pytest.mark.skipif(not _SOURCES, reason="needs the dependency group `tables`")
def test_data_file_matches_the_sources() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "tools.builtin_tables.generate", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout) == (0, "builtin_kinds.json.gz: up to date\n"), checked.stderr


def test_every_referenced_type_exists() -> None:
    for entry in builtin_tables().kinds:
        assert entry.type in builtin_tables().types
        assert "metadata" in built_in(entry.api_version, entry.kind).fields or not entry.plural
    assert built_in("apps/v1", "Deployment").name == "apps.v1.Deployment"
    assert built_in("apps/v9", "Deployment").name == ""


def test_metadata_structs_match_the_tables() -> None:
    for name, struct in OBJECT_META_STRUCTS.items():
        entry = builtin_tables().types[name]
        assert (struct, list(struct.fields)) == (entry, list(entry.fields))


def built_in(api_version: str, kind: str) -> TypeNode:
    return built_in_schema(api_version, kind).tree


def at(kind: TypeNode, *path: str) -> TypeNode:
    for step in path:
        below = kind.element if step == "*" else kind.merge_fields.get(step)
        assert below is not None, step
        kind = below
    return kind


@pytest.mark.parametrize(
    ("path", "form", "keys"),
    [
        ("metadata finalizers", "set", ()),
        ("metadata ownerReferences", "keyed", ("uid",)),
        ("metadata ownerReferences *", "scalar", ()),
        ("spec containers", "keyed", ("name",)),
        ("spec containers * ports", "keyed", ("containerPort", "protocol")),
        ("spec containers * command", "scalar", ()),
        ("spec containers * resources limits", "map", ()),
        ("spec tolerations", "scalar", ()),
        ("spec nodeSelector", "scalar", ()),
        ("spec topologySpreadConstraints", "keyed", ("topologyKey", "whenUnsatisfiable")),
        ("status conditions", "keyed", ("type",)),
    ],
)
def test_merge_strategies_of_pod_fields(path: str, form: str, keys: tuple[str, ...]) -> None:
    found = at(built_in("v1", "Pod"), *path.split())
    assert (found.merging, found.keys) == (form, keys)


def test_zero_values_that_go_always_writes() -> None:
    deployment = built_in("apps/v1", "Deployment")
    spec = mapping(mapping(deployment.zero)["spec"])
    assert at_path(spec, "template", "spec") == {"containers": None}
    assert set(spec) == {"selector", "strategy", "template"}
    assert at(deployment, "spec", "template", "spec", "containers", "*", "ports").key_defaults == {
        "containerPort": 0,
        "protocol": "TCP",
    }


def test_recursive_schema_is_one_value() -> None:
    crd = built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    # The list of versions is one value, so there is nothing to walk into.
    assert at(crd, "spec", "versions").merging == "scalar"


def test_unknown_fields_are_pruned_at_any_depth() -> None:
    container = {
        "name": "c",
        "imagee": "x",
        "envFrom": [{"prefix": "p", "other": 1}],
        "resources": {"limits": {"x": "1"}},
    }
    pod: dict[str, Any] = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namo": 1},
        "spec": {"containers": [container]},
    }
    assert prune(built_in("v1", "Pod"), pod) == [
        "metadata.namo",
        "spec.containers[0].envFrom[0].other",
        "spec.containers[0].imagee",
    ]
    assert prune(built_in("v1", "Pod"), pod) == []
    assert container == {"name": "c", "envFrom": [{"prefix": "p"}], "resources": {"limits": {"x": "1"}}}
    assert prune(built_in("example.com/v1", "Widget"), {"anything": 1}) == []


def test_open_fields_are_not_pruned() -> None:
    revision: dict[str, Any] = {"metadata": {"name": "a"}, "revision": 1, "data": {"any": {"thing": [1]}}}
    assert prune(built_in("apps/v1", "ControllerRevision"), revision) == []
