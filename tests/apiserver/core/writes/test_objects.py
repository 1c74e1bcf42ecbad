"""Names, metadata, generations and what deletes do, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import BadRequestError, InvalidError, NotFoundError
from deltaloop.apiserver.authentication import is_own_host
from deltaloop.apiserver.core.builtin.codec import BuiltInCodec
from deltaloop.apiserver.core.kinds.scaling import apply_scale, check_scale, scale_of
from deltaloop.apiserver.core.metadata.rules import generated_name, metadata_errors, normalized_metadata
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ScalePaths, ServedResource
from deltaloop.apiserver.core.storage.selection import Selection
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Flags, Moment
from deltaloop.apiserver.core.write_options import DeleteOptions, parse_delete_options
from deltaloop.apiserver.core.writes.delete import Fate, delete_object
from deltaloop.apiserver.core.writes.objects import new_object, updated_object
from deltaloop.apiserver.core.writes.server_state import ServerState
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES, built_in_schema


def served(kind: ResourceType[Resource], **traits: Any) -> ServedResource:
    schema = built_in_schema(kind.api_version, kind.kind)
    codec, list_kind = BuiltInCodec(kind, schema), f"{kind.kind}List"
    return ServedResource(
        type=kind, schema=schema, codec=codec, singular=kind.kind.lower(), list_kind=list_kind, **traits
    )


BY_TYPE = {item.type: item for item in BUILT_IN_RESOURCES}
CONFIG_MAP = served(kinds.CONFIG_MAP)
DEPLOYMENT = served(
    kinds.DEPLOYMENT, status=True, flags=Flags(generation=True), scale_paths=ScalePaths(label_selector=".spec.selector")
)
MOMENT = Moment(now=0, uid="u", random=0.25)


def texts(kind: ServedResource, **metadata: Any) -> list[str]:
    return [str(error) for error in metadata_errors(kind, metadata, new=True)]


def test_generated_names_are_valid_and_differ_by_attempt() -> None:
    names = {generated_name("a-", random=0.999999, attempt=attempt) for attempt in range(8)}
    assert len(names) == 8
    assert all(len(name) == 7 and not texts(CONFIG_MAP, name=name) for name in names)


@pytest.mark.parametrize("name", ["a", "a.b", "1", "a-b.c", "x" * 253])
def test_valid_names(name: str) -> None:
    assert not texts(CONFIG_MAP, name=name)


@pytest.mark.parametrize("name", ["A", "-a", "a-", "a_b", "a..b", "x" * 254, "a\n"])
def test_invalid_names(name: str) -> None:
    assert texts(CONFIG_MAP, name=name)


def test_some_kinds_have_special_name_rules() -> None:
    assert texts(BY_TYPE[kinds.NAMESPACE], name="a.b")
    assert texts(BY_TYPE[kinds.SERVICE], name="a.b")
    assert not texts(BY_TYPE[kinds.CLUSTER_ROLE], name="system:admin")
    assert texts(BY_TYPE[kinds.CLUSTER_ROLE], name="a/b")


def test_every_metadata_field_is_validated() -> None:
    assert not texts(
        CONFIG_MAP,
        name="a",
        labels={"app.kubernetes.io/name": "Web_1", "x": ""},
        annotations={"Example.com/Some": "thing"},
        finalizers=["kubernetes", "example.com/x"],
        ownerReferences=[{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}],
    )
    assert texts(CONFIG_MAP, name="a", labels={"/x": "y"})
    assert texts(CONFIG_MAP, name="a", labels={"x/y/z": "y"})
    assert texts(CONFIG_MAP, name="a", labels={"x": "y" * 64})
    assert texts(CONFIG_MAP, name="a", annotations={"x": "y" * (256 * 1024)})
    assert texts(CONFIG_MAP, name="a", finalizers=["plain"])
    assert texts(CONFIG_MAP, name="a", finalizers=["old.finalizer.example.com"])
    assert texts(CONFIG_MAP, name="a", generation=-1)
    assert not texts(CONFIG_MAP, name="a", generateName="a-")
    assert texts(CONFIG_MAP, name="a", generateName="A")
    assert not metadata_errors(CONFIG_MAP, {"name": "a", "generateName": "A"})
    owner = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}
    assert "Only one reference" in texts(CONFIG_MAP, name="a", ownerReferences=[owner, owner])[0]
    assert len(texts(CONFIG_MAP, name="a", ownerReferences=[{}])) == 4


def test_empty_metadata_is_omitted() -> None:
    sent: dict[str, Any] = {
        "metadata": {"name": "a", "labels": None, "finalizers": [], "creationTimestamp": None, "other": 1}
    }
    assert normalized_metadata(sent) == {"name": "a", "other": 1}


def test_generation_counts_changes_of_the_desired_state() -> None:
    context = ServerState(RevisionStore(), Registry(())).own_write(DEPLOYMENT, "", "", MOMENT)
    first = new_object(context, {"spec": {"replicas": 1}, "status": {"replicas": 9}}, {"name": "d"})
    assert at(first, "metadata", "generation") == 1
    assert first["status"] == {}

    def update(fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
        metadata = normalized_metadata(fields)
        return updated_object(DEPLOYMENT, first, fields, metadata, subresource=subresource)

    changed = update({"spec": {"replicas": 2}, "metadata": {"name": "d", "generation": 99}})
    assert at(changed, "metadata", "generation") == 2
    labelled = update({"spec": {"replicas": 1}, "status": {"x": 1}, "metadata": {"name": "d", "labels": {"a": "b"}}})
    assert at(labelled, "metadata", "generation") == 1
    status = update({"spec": {"replicas": 5}, "status": {"replicas": 1}, "metadata": {"name": "d"}}, "status")
    assert (status["spec"], status["status"]) == ({"replicas": 1}, {"replicas": 1})
    assert at(status, "metadata", "generation") == 1


def obj(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "u", "resourceVersion": "5", **metadata}}


def test_deletion_outcomes() -> None:
    options = DeleteOptions()
    assert delete_object(CONFIG_MAP, obj(), options, now=0)[0] is Fate.REMOVED
    fate, marked = delete_object(CONFIG_MAP, obj(finalizers=["x/y"], generation=1), options, now=60)
    assert fate is Fate.MARKED
    assert at(marked, "metadata", "deletionTimestamp") == "1970-01-01T00:01:00Z"
    assert at(marked, "metadata", "generation") == 2
    assert delete_object(CONFIG_MAP, marked, options, now=99) == (Fate.UNCHANGED, marked)
    fate, orphaning = delete_object(CONFIG_MAP, marked, DeleteOptions(propagation_policy="Orphan"), now=99)
    assert (fate, at(orphaning, "metadata", "finalizers")) == (Fate.MARKED, ["x/y", "orphan"])
    fate, background = delete_object(CONFIG_MAP, orphaning, DeleteOptions(propagation_policy="Background"), now=99)
    assert at(background, "metadata", "finalizers") == ["x/y"]
    freed: dict[str, Any] = {**background, "metadata": {**mapping(background["metadata"]), "finalizers": []}}
    assert delete_object(CONFIG_MAP, freed, options, now=99)[0] is Fate.REMOVED


def test_delete_options() -> None:
    assert parse_delete_options({"propagationPolicy": "Orphan", "unknown": 1}).propagation_policy == "Orphan"
    assert parse_delete_options({"gracePeriodSeconds": -5}).grace_period_seconds == 1
    with pytest.raises(InvalidError):
        parse_delete_options({"propagationPolicy": "Sideways"})


def test_scale_of_a_built_in_kind() -> None:
    fields: dict[str, Any] = {
        **obj(),
        "spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}},
        "status": {"replicas": 4},
    }
    scale = scale_of(DEPLOYMENT, fields)
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 4, "selector": "a=1,b=2"}
    assert at(apply_scale(DEPLOYMENT, fields, {"spec": {"replicas": 3}}), "spec", "replicas") == 3
    assert "replicas" not in fields["spec"]
    with pytest.raises(NotFoundError):
        scale_of(CONFIG_MAP, obj())


@pytest.mark.parametrize(
    ("scale", "field"),
    [
        ({"spec": {"replicas": True}}, "ScaleSpec.spec.replicas of type int32"),
        ({"spec": {"replicas": 2**31}}, "number 2147483648 into Go struct field ScaleSpec.spec.replicas of type int32"),
        ({"spec": {"replicas": -(2**31) - 1}}, "ScaleSpec.spec.replicas of type int32"),
        ({"status": {"replicas": "1"}}, "string into Go struct field ScaleStatus.status.replicas of type int32"),
        ({"status": {"selector": 1}}, "number into Go struct field ScaleStatus.status.selector of type string"),
        ({"spec": []}, "array into Go struct field Scale.spec of type v1.ScaleSpec"),
    ],
)
def test_invalid_scale_is_rejected(scale: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidError, match=field) as refused:
        check_scale(scale, patched=True)
    details = refused.value.status.details
    assert details is not None
    assert [cause.field for cause in details.causes] == ["patch"]
    with pytest.raises(BadRequestError, match=field):
        check_scale(scale, patched=False)


def test_valid_scale_is_accepted() -> None:
    for replicas in (None, 0, -1, 2**31 - 1, -(2**31)):
        check_scale({"spec": {"replicas": replicas}, "status": {"replicas": 1, "selector": "a=b"}}, patched=False)
    check_scale({}, patched=True)


def test_selections() -> None:
    node = Resource.from_dict({"metadata": {"name": "n", "namespace": "x", "labels": {"a": "b"}}, "spec": {"on": True}})
    assert Selection.parse("a=b", "metadata.name=n,metadata.namespace=x").matches(node)
    assert not Selection.parse("a!=b", "").matches(node)
    assert Selection.parse("", "spec.on=true", supported=("spec.on",)).matches(node)
    assert Selection.parse("", "spec.unschedulable=false", supported=("spec.unschedulable",)).matches(node)
    assert Selection.parse("", "spec.on.deeper=", supported=("spec.on.deeper",)).matches(node)
    assert Selection.parse("", "").everything


def test_hosts() -> None:
    for own in ("localhost", "127.0.0.1:80", "[::1]", "[::1]:80", "::1", "127.9.9.9"):
        assert is_own_host(own, listening_on="127.0.0.1"), own
    for other in ("", "example.com", "127.0.0.1.example.com", "10.0.0.1", "localhost.example.com:80", "[::2]"):
        assert not is_own_host(other, listening_on="127.0.0.1"), other
