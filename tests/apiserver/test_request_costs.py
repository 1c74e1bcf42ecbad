"""What one request costs: input that grows eightfold costs about eight times as much, whatever it is made of.

Cost is counted in calls, of Python and of C functions, so that it is the same on a busy machine. What a single
call of C does (looking for an item in a list) is not seen by that; for the parts that a client may repeat without end,
a second test looks at the processor's time, with a wide margin.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.json_values import copied
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.access.rbac import Rule, missing_rules
from deltaloop.apiserver.core.answers.openapi import index_document
from deltaloop.apiserver.core.answers.published import PublishedSchemas
from deltaloop.apiserver.core.controllers.first_objects import make_namespaces
from deltaloop.apiserver.core.crds.definition import default_crd
from deltaloop.apiserver.core.metadata.rules import new_finalizer_errors
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.writes.apply import apply
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.server_state import ServerState
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.serving import CONFIG_MAPS, CRDS, Caller, config_map, serving
from tests.conformance.target import widget_crd
from tests.nightly import by_day

APPLY, MERGE, STRATEGIC = (
    f"application/{name}" for name in ("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json")
)
JSON_PATCH = "application/json-patch+json"
YAML = "application/yaml"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
SERVICES = "/api/v1/namespaces/default/services"
MAP = f"{CONFIG_MAPS}/x"
Request = tuple[str, str, Any, str]
Input = Callable[[int], list[Request]]
FEW, MANY = 24, 192
GROWTH = MANY / FEW * 1.4  # more than n log n has, and far less than the square
INPUTS: dict[str, Input] = {}


def grows(make: Input) -> Input:
    """Count what the requests cost that this gives for a size."""
    INPUTS[make.__name__] = make
    return make


def times(size: int, item: Callable[[int], Any]) -> list[Any]:
    return [item(number) for number in range(size)]


def owner(number: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "K", "name": f"o{number}", "uid": f"u{number}"}


def pod(**container: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i", **container}]}}


def deployment(env: list[Any], **more: Any) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i", "env": env, **more}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "x"}, "spec": spec}


@grows
def owner_references(size: int) -> list[Request]:
    owned = config_map("x", None, ownerReferences=times(size, owner))
    patch = {"metadata": {"ownerReferences": times(size, lambda number: {**owner(number), "kind": "L"})}}
    return [
        ("POST", CONFIG_MAPS, owned, ""),
        ("PATCH", MAP, patch, STRATEGIC),
        ("PATCH", f"{MAP}?fieldManager=a&force=true", owned, APPLY),
    ]


@grows
def finalizers(size: int) -> list[Request]:
    old, new = times(size, lambda number: f"a.b/f{number}"), times(size, lambda number: f"a.b/g{number}")
    order = "$setElementOrder/finalizers"
    lost = "$deleteFromPrimitiveList/finalizers"
    return [
        ("POST", CONFIG_MAPS, config_map("x", None, finalizers=old), ""),
        ("PATCH", MAP, {"metadata": {"finalizers": new, order: new, lost: old}}, STRATEGIC),
        ("PATCH", f"{MAP}?fieldManager=a&force=true", config_map("x", None, finalizers=old[::-1]), APPLY),
        ("DELETE", MAP, None, ""),
        ("PUT", MAP, config_map("x", None, finalizers=old), ""),
    ]


@grows
def labels_and_annotations(size: int) -> list[Request]:
    pairs = {f"k{number}": "v" for number in range(size)}
    more = {f"l{number}": "v" for number in range(size)}
    return [
        ("POST", CONFIG_MAPS, config_map("x", None, labels=pairs, annotations=pairs), ""),
        ("PATCH", MAP, {"metadata": {"labels": more}}, MERGE),
    ]


@grows
def managed_fields(size: int) -> list[Request]:
    def entry(number: int) -> dict[str, Any]:
        owned = {"manager": f"m{number}", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
        return {**owned, "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {f"f:k{number}": {}}}}

    data = {f"k{number}": "v" for number in range(size)}
    made = config_map("x", data, managedFields=times(size, entry))
    changed = config_map("x", dict.fromkeys(data, "w"), managedFields=times(size, entry))
    return [
        ("POST", CONFIG_MAPS, made, ""),
        ("PUT", MAP, changed, ""),
        ("PATCH", f"{MAP}?fieldManager=a&force=true", config_map("x", dict.fromkeys(data, "x")), APPLY),
        ("PATCH", f"{MAP}?fieldManager=b", config_map("x", dict.fromkeys(data, "y")), APPLY),
        ("PATCH", f"{MAP}?fieldManager=a", config_map("x"), APPLY),
    ]


@grows
def parts_of_a_container(size: int) -> list[Request]:
    env = times(size, lambda number: {"name": f"E{number}", "value": "v"})
    ports = times(size, lambda number: {"containerPort": number + 1, "name": f"p{number}"})
    mounts = times(size, lambda number: {"name": f"v{number}", "mountPath": f"/v{number}"})
    made = pod(env=env, ports=ports, volumeMounts=mounts)
    made["spec"]["volumes"] = times(size, lambda number: {"name": f"v{number}", "emptyDir": {}})
    same = pod(ports=times(size, lambda number: {"containerPort": 80, "hostPort": number + 1}))
    same["metadata"]["name"] = "y"
    return [("POST", PODS, made, ""), ("POST", PODS, same, "")]


@grows
def tolerations(size: int) -> list[Request]:
    made = pod()
    made["spec"]["tolerations"] = times(size, lambda number: {"key": f"k{number}", "operator": "Exists"})
    more = [*made["spec"]["tolerations"], {"key": "z", "operator": "Exists"}]
    return [("POST", PODS, made, ""), ("PATCH", f"{PODS}/x", {"spec": {"tolerations": more}}, MERGE)]


@grows
def containers(size: int) -> list[Request]:
    made = pod()
    made["spec"]["containers"] = times(size, lambda number: {"name": f"c{number}", "image": "i"})
    return [("POST", PODS, made, "")]


@grows
def items_of_a_strategic_merge(size: int) -> list[Request]:
    old = times(size, lambda number: {"name": f"E{number}", "value": "v"})
    new = [{**item, "value": "w"} for item in reversed(old)]
    order = {"$setElementOrder/env": [{"name": item["name"]} for item in new]}
    gone = [{"name": item["name"], "$patch": "delete"} for item in old]
    return [
        ("POST", DEPLOYMENTS, deployment(old), ""),
        ("PATCH", f"{DEPLOYMENTS}/x", deployment(new, **order), STRATEGIC),
        ("PATCH", f"{DEPLOYMENTS}/x", deployment(gone), STRATEGIC),
    ]


@grows
def items_of_an_apply(size: int) -> list[Request]:
    env = times(size, lambda number: {"name": f"E{number}", "value": "v"})
    return [
        ("PATCH", f"{DEPLOYMENTS}/x?fieldManager=a", deployment(env), APPLY),
        ("PATCH", f"{DEPLOYMENTS}/x?fieldManager=b&force=true", deployment(env[::-1]), APPLY),
        ("PATCH", f"{DEPLOYMENTS}/x?fieldManager=a", deployment([]), APPLY),
    ]


@grows
def sets_and_maps_of_a_custom_resource(size: int) -> list[Request]:
    spec = {
        "names": times(size, lambda number: f"n{number}"),
        "parts": times(size, lambda number: {"name": f"p{number}", "v": number}),
        "table": {f"t{number}": number for number in range(size)},
        "free": {f"f{number}": [number] for number in range(size)},
    }
    made = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "x"}, "spec": spec}
    twice = {**made, "metadata": {"name": "y"}, "spec": {**spec, "names": ["a"] * size}}
    return [
        ("PATCH", f"{WIDGETS}/x?fieldManager=a", made, APPLY),
        ("PATCH", f"{WIDGETS}/x?fieldManager=b", made, APPLY),
        ("PUT", f"{WIDGETS}/x", made, ""),
        ("POST", WIDGETS, twice, ""),
    ]


@grows
def operations_of_a_json_patch(size: int) -> list[Request]:
    data = times(size, lambda number: {"op": "add", "path": f"/data/k{number}", "value": "v"})
    first = "/metadata/finalizers/0"
    added = times(size, lambda number: {"op": "add", "path": first, "value": f"a.b/f{number}"})
    removed = times(size, lambda _: {"op": "remove", "path": first})
    tested = times(size, lambda number: {"op": "test", "path": f"/data/k{number}", "value": "v"})
    made = config_map("x", {"a": "b"}, finalizers=["a.b/c"])
    return [("POST", CONFIG_MAPS, made, ""), ("PATCH", MAP, [*data, *added, *removed, *tested], JSON_PATCH)]


@grows
def lines_of_yaml(size: int) -> list[Request]:
    head = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: {}\n"
    block = "data:\n  a: &a v\n" + "".join(f"  k{number}: *a\n" for number in range(size))
    flow = "data: {" + ", ".join(f"k{number}: v" for number in range(size)) + "}\n"
    text = "data:\n  k: |\n" + "".join(f"    {number}\n" for number in range(size))
    listed = "  finalizers:\n" + "".join(f"  - a.b/f{number}\n" for number in range(size))
    documents = "---\na: b\n" * size
    bodies = (block, flow, text, listed, documents)
    return [
        ("POST", CONFIG_MAPS, (head.format(f"y{place}") + body).encode(), YAML) for place, body in enumerate(bodies)
    ]


@grows
def keys_that_come_twice(size: int) -> list[Request]:
    repeated = ",".join('"k":"v"' for _ in range(size))
    unknown = {**config_map("y"), **{f"x{number}": 1 for number in range(size)}}  # 100 are told at most
    return [
        ("POST", CONFIG_MAPS, f'{{"metadata":{{"name":"x"}},"data":{{{repeated}}}}}'.encode(), ""),
        ("POST", CONFIG_MAPS, unknown, ""),
    ]


@grows
def what_is_wrong(size: int) -> list[Request]:
    return [
        ("POST", PODS, pod(env=times(size, lambda _: {"name": "", "value": "v"})), ""),
        ("POST", SERVICES, {"metadata": {"name": "x"}, "spec": {"ports": times(size + 1, lambda _: {"port": 80})}}, ""),
    ]


@grows
def expressions_of_a_selector(size: int) -> list[Request]:
    expressions = times(size, lambda number: {"key": f"k{number}", "operator": "In", "values": ["a"]})
    made = {"metadata": {"name": "x"}, "spec": {"podSelector": {"matchExpressions": expressions}}}
    values = ",".join(f"v{number}" for number in range(size))
    return [
        ("POST", POLICIES, made, ""),
        ("GET", f"{CONFIG_MAPS}?labelSelector=k+in+({values})", None, ""),
        ("GET", f"{CONFIG_MAPS}?labelSelector={','.join(f'k{number}' for number in range(size))}", None, ""),
    ]


@grows
def long_texts_and_numbers(size: int) -> list[Request]:
    digits = "9" * size * 8
    quantity = {"limits": {"cpu": "1"}}
    return [
        ("POST", CONFIG_MAPS, config_map("a-" * size * 8 + "!"), ""),
        ("POST", CONFIG_MAPS, config_map("x", None, labels={"a." * size * 8: "v-" * size * 8 + "!"}), ""),
        ("POST", PODS, json.dumps(pod(resources=quantity)).replace('"1"', f'"{digits}"').encode(), ""),
        ("POST", PODS, json.dumps(pod(resources=quantity)).replace('"1"', f'"0.{digits}"').encode(), ""),
        ("POST", PODS, json.dumps(pod(resources=quantity)).replace('"1"', digits).encode(), ""),
    ]


async def ask(call: Caller, requests: list[Request]) -> None:
    for method, path, body, content_type in requests:
        headers = {"Content-Type": content_type} if content_type else {}
        answer = await call.call(method, path, body, **headers)
        assert answer.status < 500, answer.text


async def calls_of(make: Input, size: int) -> int:
    """Count the calls that the requests take, on a server of their own."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async with serving() as on:
        await on.call.created(CRDS, widget_crd("example.com"))
        requests = make(size)
        sys.setprofile(counted)
        threading.setprofile(counted)  # what is large is written in a thread that begins with it
        try:
            await ask(on.call, requests)
        finally:
            threading.setprofile(None)  # pyright: ignore[reportArgumentType]  # none again
            sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", by_day(INPUTS, [*INPUTS][::4]))
async def test_calls_grow_with_the_input(name: str) -> None:
    await calls_of(INPUTS[name], 1)  # what is read once for all
    least, few, many = [await calls_of(INPUTS[name], size) for size in (1, FEW, MANY)]
    assert many - least < (few - least) * GROWTH, (least, few, many)


async def seconds_of(make: Input, size: int) -> float:
    async with serving() as on:
        requests = make(size)
        began = time.process_time()  # of all threads: what is large is written in one of its own
        await ask(on.call, requests)
        return time.process_time() - began


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["owner_references", "finalizers", "tolerations"])
async def test_time_grows_with_the_input(name: str) -> None:
    gc.disable()
    try:
        # In turns: on a shared machine a moment is half as fast as the next.
        pairs = [[await seconds_of(INPUTS[name], size) for size in (1000, 4000)] for _ in range(3)]
    finally:
        gc.enable()
    few, many = map(min, zip(*pairs, strict=True))
    assert many < few * 6, (few, many)  # four times, or the square of that


def named(count: int, word: str) -> tuple[str, ...]:
    return tuple(f"{word}{number}" for number in range(count))


def calls(work: Callable[[], object]) -> int:
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("size", [80, 50_000])
def test_cost_of_role_comparison_is_bounded(size: int) -> None:
    """A body of a few kilobytes stands for half a million combinations, one of 3 MiB for more than can be counted."""
    role = Rule(verbs=named(size, "v"), groups=named(size, "g"), resources=named(size, "r"))
    held = [Rule(verbs=("get",), groups=("",), resources=("pods",)), replace_verbs(role, 1)]
    missing: list[Rule] = []
    assert calls(lambda: missing.extend(missing_rules(held, [role]))) < 1_000_000
    assert missing
    assert missing_rules([*held, role], [role]) == ()


def test_cost_of_a_new_crd_does_not_depend_on_their_number() -> None:
    def served(size: int) -> Registry:
        registry = built_in_registry()
        for number in range(size):
            registry.apply_crd(default_crd(widget_crd(f"g{number}.example.com")), now=0)
        return registry

    crd = default_crd(widget_crd("example.com"))
    crd["status"] = built_in_registry().apply_crd(crd, now=0)
    few, many = (calls(partial(served(size).apply_crd, crd, now=0)) for size in (3, 100))
    assert many < few * 1.4, (few, many)


def test_document_hashes_are_computed_once() -> None:
    registry = built_in_registry()
    for number in range(150):  # many, since those of the built-in kinds may be hashed already
        registry.apply_crd(default_crd(widget_crd(f"hashed{number}.example.com")), now=0)
    first, again = (calls(partial(index_document, registry)) for _ in range(2))
    assert again < first / 2, (first, again)


def test_published_schema_is_converted_once() -> None:
    definitions = {f"k{number}": {"$ref": f"#/$defs/k{number + 1}"} for number in range(99)} | {
        "k99": {"type": "object"}
    }
    published = PublishedSchemas(definitions)
    first, again = (calls(partial(published.add_to, {}, "k0")) for _ in range(2))
    assert again < first / 2, (first, again)


def replace_verbs(rule: Rule, count: int) -> Rule:
    return Rule(verbs=rule.verbs[:count], groups=rule.groups, resources=rule.resources)


def test_rules_are_compared_only_with_related_rules() -> None:
    def work(size: int) -> Callable[[], object]:
        held = [Rule(verbs=("get",), groups=("",), resources=(name,)) for name in named(size, "r")]
        names = [Rule(verbs=("get",), groups=("",), resources=("pods",), names=(name,)) for name in named(size, "n")]
        return lambda: missing_rules([*held, *names], [*reversed(held), *reversed(names)])

    assert work(50)() == ()
    assert calls(work(400)) < calls(work(50)) * 8 * 1.4


class Compared(str):
    """A text that counts how often texts like it are compared."""

    __slots__ = ()

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.compared += 1
        return str.__eq__(self, str(other))


def _compared(number: int) -> str:
    return Compared(f"a.b/f{number}")


def test_finalizers_of_deleted_object_are_found_in_constant_time() -> None:
    old, new = ([*map(_compared, range(1000))] for _ in range(2))
    assert new_finalizer_errors(old, new) == []
    assert Compared.compared < 4 * len(new)


@pytest.mark.parametrize(("field", "entry"), [("names", "a"), ("parts", {"name": "a", "v": 1})], ids=["set", "map"])
@pytest.mark.parametrize("verb", ["create", "update", "apply"])
def test_key_with_more_than_a_thousand_values(field: str, entry: object, verb: str) -> None:
    moment = Moment(now=0, uid="u")
    state = ServerState(RevisionStore(), built_in_registry())
    make_namespaces(state, lambda: moment)
    crds = state.registry.resource(kinds.CUSTOM_RESOURCE_DEFINITION)
    assert crds is not None
    create(state.own_write(crds, "", "", moment), widget_crd("example.com"))
    served = state.registry.find("example.com", "v1", "widgets")
    assert served is not None

    def body(size: int) -> dict[str, Any]:
        fields = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
        return {**fields, "spec": {field: [copied(entry) for _ in range(size)]}}

    def write(fields: dict[str, Any]) -> object:
        if verb == "apply":
            return apply(state.own_write(served, "default", "a", moment), fields)
        if verb == "create":
            return create(state.own_write(served, "default", "", moment), fields)
        return patch(state.own_write(served, "default", "a", moment), lambda now: {**now, "spec": fields["spec"]})

    def refused(size: int) -> None:
        with pytest.raises(ApiError, match="uplicate"):
            write(body(size))

    if verb == "update":
        create(state.own_write(served, "default", "", moment), body(1))
    refused(2)  # what is worked out once for all
    few, many = (calls(partial(refused, size)) for size in (150, 1200))
    assert many < few * 8 * 1.4, (few, many)
