"""Whether a child is as it was applied: known cases, and the embedded server's own apply as the oracle."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.json_values import is_mapping, items, mapping
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.storage.encoding import decode_object
from deltaloop.apiserver.core.wire.bodies import JSON_PATCH
from deltaloop.apiserver.core.write_context import WriteContext
from deltaloop.apiserver.core.writes.apply import apply
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.patching import apply_patch
from deltaloop.runtime.core.drift import MISSING, Difference, Differences, Known, KnownChildren, differences
from deltaloop.runtime.objects.builtin_types import type_of
from tests.apiserver.core.facts import NAMESPACE, Cores
from tests.nightly import examples
from tests.runtime.families import deployment, service

FOO: ResourceType[Any] = ResourceType("example.com", "v1", "Foo", "foos")


def found(kind: ResourceType[Any], sent: dict[str, Any], live: dict[str, Any]) -> list[tuple[str | int, ...]]:
    return [each.path for each in differences(type_of(kind), sent, live)]


def pod(**container: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "web", **container}]}}}}


def limits(**amounts: Any) -> dict[str, Any]:
    return pod(resources={"limits": amounts})


@pytest.mark.parametrize(
    ("sent", "live"),
    [
        (limits(cpu="1000m", memory="1024Mi"), limits(cpu="1", memory="1Gi")),
        (limits(cpu=0.5), limits(cpu="500m")),
        (
            pod(ports=[{"containerPort": 80}]),
            pod(ports=[{"containerPort": 81}, {"containerPort": 80, "protocol": "TCP"}]),
        ),
        (pod(env=[{"name": "A", "value": ""}]), pod(env=[{"name": "B"}, {"name": "A"}])),
        (pod(image=None, args=[]), pod(image="x")),
        ({"spec": {"template": {"spec": {"hostNetwork": False}}}}, {"spec": {"template": {"spec": {}}}}),
        ({"spec": {"replicas": 2.0}}, {"spec": {"replicas": 2}}),
        ({"metadata": {"finalizers": ["a"]}}, {"metadata": {"finalizers": ["b", "a"]}}),
        ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": "1", "b": "2"}}}),
        ({"metadata": {"labels": {}}}, {"metadata": {}}),
        ({"metadata": {"labels": {}}}, {"metadata": {"labels": {"theirs": "1"}}}),
        (pod(env=[]), pod(env=[{"name": "THEIRS"}])),
    ],
)
def test_equivalent_object_has_no_drift(sent: dict[str, Any], live: dict[str, Any]) -> None:
    assert found(kinds.DEPLOYMENT, sent, live) == []


CONTAINER = ("spec", "template", "spec", "containers", 0)


@pytest.mark.parametrize(
    ("sent", "live", "path"),
    [
        (limits(cpu="1000m"), limits(cpu="2"), (*CONTAINER, "resources", "limits", "cpu")),
        (pod(image="a"), pod(image="b"), (*CONTAINER, "image")),
        (pod(image="a"), {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "a"}]}}}}, CONTAINER),
        (pod(args=["a"]), pod(args=["a", "b"]), (*CONTAINER, "args")),
        (pod(args=[]), pod(args=["a"]), (*CONTAINER, "args")),
        (pod(env=[{"name": "A", "value": "1"}]), pod(env=[]), (*CONTAINER, "env", 0)),
        ({"spec": {"replicas": 1}}, {"spec": {"replicas": True}}, ("spec", "replicas")),
        ({"spec": {"replicas": 1}}, {}, ("spec",)),
        ({"metadata": {"finalizers": ["a"]}}, {"metadata": {"finalizers": ["b"]}}, ("metadata", "finalizers")),
        ({"metadata": {"labels": {"a": ""}}}, {"metadata": {"labels": {}}}, ("metadata", "labels", "a")),
        (
            {"spec": {"selector": {"matchLabels": {"a": "1"}}}},
            {"spec": {"selector": {"matchLabels": {"a": "1", "b": "2"}}}},
            ("spec", "selector"),
        ),
    ],
)
def test_changed_field_is_drift(sent: dict[str, Any], live: dict[str, Any], path: tuple[str | int, ...]) -> None:
    assert found(kinds.DEPLOYMENT, sent, live) == [path]


def test_string_field_is_not_compared_as_quantity() -> None:
    assert found(kinds.CONFIG_MAP, {"data": {"cpu": "1000m"}}, {"data": {"cpu": "1"}}) == [("data", "cpu")]


def test_secret_values_are_compared_but_never_shown() -> None:
    [difference] = differences(type_of(kinds.SECRET), {"data": {"k": "aGk="}}, {"data": {"k": "c2VjcmV0"}})
    assert repr(difference) == "Difference(('data', 'k'))"


def test_custom_kind_is_compared_by_field_and_its_lists_as_units() -> None:
    assert found(FOO, {"spec": {"a": {"b": 1}}}, {"spec": {"a": {"b": 1, "c": 2}, "d": 3}}) == []
    assert found(FOO, {"spec": {"a": [{"b": 1}]}}, {"spec": {"a": [{"b": 1, "c": 2}]}}) == [("spec", "a")]
    assert found(FOO, {"spec": {"a": {}}}, {"spec": {}}) == [("spec", "a")]
    selector, wider = {"s": {"matchLabels": {"a": "1"}}}, {"s": {"matchLabels": {"a": "1", "b": "2"}}}
    assert found(FOO, {"spec": selector}, {"spec": wider}) == [("spec", "s")]
    assert found(FOO, {"spec": {"cpu": "1000m"}}, {"spec": {"cpu": "1"}}) == [("spec", "cpu")]


def test_value_of_invalid_type_is_compared_literally() -> None:
    sent = {"spec": {"replicas": "three", "paused": False}}
    assert found(kinds.DEPLOYMENT, sent, {"spec": {"replicas": "three"}}) == [("spec", "paused")]


def test_known_children_are_bounded_and_belong_to_one_applied_hash() -> None:
    known = KnownChildren(limit=2)
    one, two, three = (Known("hash", str(number), ()) for number in range(3))
    known.remember("a", one)
    known.remember("b", two)
    assert known.get("a", "hash") is one
    assert known.get("a", "another") is None
    known.remember("c", three)
    assert [known.get(uid, "hash") for uid in "abc"] == [one, None, three]
    known.forget("a")
    assert len(known) == 1


# -- the server as the oracle


def samples() -> list[tuple[ResourceType[Any], dict[str, Any]]]:
    allowed = {
        "from": [{"podSelector": {"matchLabels": {"a": "b"}}}, {"namespaceSelector": {"matchLabels": {"c": "d"}}}],
        "ports": [{"port": 80}],
    }
    policy = {
        "podSelector": {"matchLabels": {"a": "b"}},
        "policyTypes": ["Ingress"],
        "ingress": [allowed],
    }
    whole = deployment("web", replicas=2)
    spec = whole["spec"]["template"]["spec"]
    spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    spec["nodeSelector"] = {"disk": "ssd"}
    spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    claims = {"serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    small = {"containers": [{"name": "web", "image": "web:1"}]}
    stateful = {
        **deployment("web")["spec"],
        **claims,
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": small},
    }
    return [
        (kinds.DEPLOYMENT, whole),
        (kinds.STATEFUL_SET, {"spec": stateful}),
        (kinds.SERVICE, service("web")),
        (kinds.CONFIG_MAP, {"data": {"a": "1000m", "b": ""}}),
        (kinds.SECRET, {"data": {"a": "aGk="}, "type": "Opaque"}),
        (kinds.NETWORK_POLICY, {"spec": policy}),
    ]


class Child:
    """A child on the server's cores, and what is known of it."""

    def __init__(self, kind: ResourceType[Any], sent: dict[str, Any]) -> None:
        self.cores = Cores()
        self.kind = kind
        self.served = self.cores.served(kind.group, kind.version, kind.plural)
        self.sent: dict[str, object] = {
            **copy.deepcopy(sent),
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "x", "namespace": NAMESPACE, "labels": {"l": "1"}, "annotations": {"n": ""}},
        }
        self.known: Differences = ()

    def context(self, manager: str, *, force: bool = False) -> WriteContext:
        moment = self.cores.moment()
        return self.cores.state.own_write(self.served, NAMESPACE, "x", moment, manager=manager, force=force)

    def apply(self) -> dict[str, Any]:
        stored = decode_object(self.served, apply(self.context("ours", force=True), copy.deepcopy(self.sent))[0])
        self.known = self.differences(stored)
        return stored

    def differences(self, live: dict[str, Any]) -> Differences:
        return differences(type_of(self.kind), self.sent, live)

    def changed_by_others(self, operations: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Return the object after a change by others; None if the server refuses it."""
        try:
            changed = patch(
                self.context("others"),
                lambda present: apply_patch(JSON_PATCH, present, msgspec.json.encode(operations), self.served),
            )
        except ApiError:
            return None
        return decode_object(self.served, changed)

    def agrees_about(self, operations: list[dict[str, Any]]) -> bool | None:
        """Tell whether our decision after a change by others is the server's; None if there is no change."""
        before = self.cores.state.read(self.served, NAMESPACE, "x")
        changed = self.changed_by_others(operations)
        if changed is None or changed["metadata"]["resourceVersion"] == before.resource_version:
            return None
        ours = self.differences(changed) != self.known
        try:
            applied = self.apply()
        except ApiError:  # with what others did it makes no sense
            self.cores = Cores()
            self.apply()
            return ours
        return ours == (shown(applied) != shown(changed))


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: fields["metadata"].get(name) for name in ("labels", "annotations")}
    return {**fields, "metadata": metadata}


SHOWN = {"": ("spec", "data", "metadata"), "/metadata": ("labels", "annotations")}


def patches(value: object, path: str = "") -> Iterator[list[dict[str, Any]]]:
    """Yield changes of each part of an object: replaced, removed, with something added."""
    if path.count("/") > 1 or path == "/data":
        yield [{"op": "remove", "path": path}]
    if is_mapping(value):
        yield [{"op": "add", "path": f"{path}/theirs", "value": "x"}]
        for name, inner in value.items():
            if name in SHOWN.get(path, (name,)):
                yield from patches(inner, f"{path}/{name}")
    elif items(value):
        for index, inner in enumerate(items(value)):
            yield [{"op": "add", "path": f"{path}/-", "value": renamed(inner)}]
            yield from patches(inner, f"{path}/{index}")
    elif isinstance(value, bool):
        yield [{"op": "replace", "path": path, "value": not value}]
    elif isinstance(value, int):
        yield [{"op": "replace", "path": path, "value": value + 1}]
    elif isinstance(value, str):
        yield from ([{"op": "replace", "path": path, "value": other}] for other in (f"{value}x", "77m"))


def renamed(item: object) -> object:
    """Return an item that is another one in each of its texts."""
    if is_mapping(item):
        return {key: f"{inner}x" if isinstance(inner, str) else inner for key, inner in item.items()}
    return f"{item}x"


@pytest.mark.parametrize(("kind", "sent"), samples(), ids=[kind.kind for kind, _ in samples()])
def test_foreign_change_is_drift_exactly_if_apply_would_undo_it(kind: ResourceType[Any], sent: dict[str, Any]) -> None:
    child = Child(kind, sent)
    stored = child.apply()
    assert child.known == ()  # another process would know from the types alone what the server makes of it
    wrong = [patch for patch in patches(stored) if child.agrees_about(patch) is False]
    assert wrong == []


@st.composite
def parts(draw: st.DrawFn, value: object) -> object:
    """Draw an object that has some of the fields of another one."""
    if is_mapping(value):
        return {name: draw(parts(inner)) for name, inner in value.items() if draw(st.integers(0, 9))}
    return [draw(parts(inner)) for inner in items(value)] if items(value) else value


@settings(max_examples=examples(60))
@given(st.data())
def test_drift_matches_apply_for_random_children_and_patches(data: st.DataObject) -> None:
    kind, whole = data.draw(st.sampled_from(samples()))
    child = Child(kind, whole)
    child.apply()  # as somebody else's, of whom some fields stay
    child.sent = {
        **mapping(data.draw(parts(whole))),
        **{name: child.sent[name] for name in ("apiVersion", "kind", "metadata")},
    }
    try:
        stored = child.apply()
    except ApiError:
        return
    for _ in range(3):
        patch = data.draw(st.sampled_from([*patches(stored)]))
        assert child.agrees_about(patch) in (True, None)
        stored = decode_object(child.served, child.cores.state.read(child.served, NAMESPACE, "x"))


def test_difference_contains_path_of_field() -> None:
    assert differences(type_of(FOO), {"spec": {"a": 1}}, {"spec": {}}) == (Difference(("spec", "a"), MISSING),)
