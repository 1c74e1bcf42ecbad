from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.writes.strategic_merge import StrategicMergeError, strategic_merge
from deltaloop.schemas.types import TypeNode
from tests.apiserver.core.built_in import built_in_schema

# A small world with every sort of rule: items merged by name, with such items and plain values below them.
TAGS = TypeNode(patch_key="")
ITEM = TypeNode(patch_key="name", fields={"below": TypeNode(patch_key="name"), "tags": TAGS})
TYPE = TypeNode(
    fields={
        "list": ITEM,
        "tags": TAGS,
        "ports": TypeNode(patch_key="port"),
    }
)


def rules_of(kind: ResourceType[Any]) -> TypeNode:
    return built_in_schema(kind.api_version, kind.kind).tree


def merge(current: dict[str, Any], patch: dict[str, Any], node: TypeNode = TYPE) -> dict[str, Any]:
    before = copy.deepcopy((current, patch))
    result = strategic_merge(current, patch, node)
    assert (current, patch) == before
    return result


def named(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, **fields} for name in names]


def names(items: list[dict[str, Any]]) -> str:
    return "".join(item["name"] for item in items)


@pytest.mark.parametrize(
    ("current", "patch", "result"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
        ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"free": [1, 2]}, {"free": [3]}, {"free": [3]}),
        ({"free": [{"name": "a"}]}, {"free": [{"name": "b"}]}, {"free": [{"name": "b"}]}),
        ({"list": [{"name": "a"}]}, {"list": []}, {"list": [{"name": "a"}]}),
        ({"list": [{"name": "a"}]}, {"list": None}, {}),
        ({"list": [{"name": "a"}]}, {"list": "text"}, {"list": "text"}),
    ],
)
def test_objects_merge_null_removes_and_other_values_replace(
    current: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]
) -> None:
    assert merge(current, patch) == result


def test_items_with_the_same_key_merge() -> None:
    current = {"list": [{"name": "a", "x": 1, "y": {"p": 1}}, {"name": "b", "x": 1}]}
    patch = {"list": [{"name": "a", "x": 2, "y": {"q": 2}}]}
    assert merge(current, patch) == {"list": [{"name": "a", "x": 2, "y": {"p": 1, "q": 2}}, {"name": "b", "x": 1}]}


def test_null_in_an_item_removes_its_field() -> None:
    assert merge({"list": [{"name": "a", "x": 1}]}, {"list": [{"name": "a", "x": None}]}) == {"list": named("a")}


def test_merged_lists_can_be_nested() -> None:
    current = {"list": [{"name": "a", "below": named("x", v=1), "tags": ["s"]}]}
    patch = {"list": [{"name": "a", "below": [*named("y"), {"name": "x", "v": 2}], "tags": ["t"]}]}
    assert merge(current, patch) == {
        "list": [{"name": "a", "below": [{"name": "y"}, {"name": "x", "v": 2}], "tags": ["t", "s"]}]
    }


def test_first_of_two_items_with_the_same_key_is_merged() -> None:
    current = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    result = merge(current, {"ports": [{"port": 53, "n": 1}]})
    assert {"port": 53, "protocol": "UDP", "n": 1} in result["ports"]
    assert {"port": 53, "protocol": "TCP"} in result["ports"]


@pytest.mark.parametrize(
    ("current", "patched", "result"),
    [
        ("ab", "c", "cab"),
        ("ab", "b", "ab"),
        ("abc", "ca", "bca"),
        ("abc", "bx", "abxc"),
        ("abc", "xb", "xabc"),
        ("", "ba", "ba"),
        ("abc", "cba", "cba"),
        ("abcd", "db", "acdb"),
    ],
)
def test_order_of_a_merged_list(current: str, patched: str, result: str) -> None:
    assert names(merge({"list": named(*current)}, {"list": named(*patched)})["list"]) == result
    assert "".join(merge({"tags": [*current]}, {"tags": [*patched]})["tags"]) == result


@pytest.mark.parametrize(
    ("current", "patched", "order", "result"),
    [
        ("ab", "c", "abc", "abc"),
        ("ab", "c", "acb", "acb"),
        ("ab", "", "ba", "ba"),
        ("abx", "c", "bca", "bcax"),
        ("xab", "", "ba", "xba"),
        ("axb", "", "ab", "axb"),
        ("", "ab", "ab", "ab"),
    ],
)
def test_order_from_the_patch(current: str, patched: str, order: str, result: str) -> None:
    patch = {"list": named(*patched), "$setElementOrder/list": named(*order)}
    assert names(merge({"list": named(*current)}, patch)["list"]) == result
    plain = {"tags": [*patched], "$setElementOrder/tags": [*order]}
    assert "".join(merge({"tags": [*current]}, plain)["tags"]) == result


def test_order_directive_alone_only_sorts() -> None:
    assert merge({"tags": ["a", "b"]}, {"$setElementOrder/tags": ["b", "a"]}) == {"tags": ["b", "a"]}
    assert merge({}, {"$setElementOrder/tags": ["b", "a"]}) == {}
    assert merge({"tags": ["a"]}, {"tags": None, "$setElementOrder/tags": []}) == {}


def test_deletion_and_order_in_one_patch() -> None:
    patch = {
        "list": [{"name": "c"}, {"name": "a", "$patch": "delete"}],
        "$setElementOrder/list": named("c", "b"),
    }
    assert names(merge({"list": named("a", "b")}, patch)["list"]) == "cb"


@pytest.mark.parametrize(("patched", "order"), [("ab", "ba"), ("c", "ab")])
def test_changes_that_contradict_the_order_are_rejected(patched: str, order: str) -> None:
    with pytest.raises(StrategicMergeError, match="doesn't match") as caught:
        merge({"list": named("a", "b")}, {"list": named(*patched), "$setElementOrder/list": named(*order)})
    assert caught.value.code == 500


def test_delete_directive_removes_every_item_with_the_key() -> None:
    current = {"ports": [{"port": 1}, {"port": 2, "x": 1}, {"port": 2, "x": 2}]}
    assert merge(current, {"ports": [{"port": 2, "$patch": "delete"}]}) == {"ports": [{"port": 1}]}
    assert merge(current, {"ports": [{"port": 9, "$patch": "delete"}]}) == current


def test_delete_directive_in_an_object_empties_it() -> None:
    assert merge({"a": {"b": 1}}, {"a": {"$patch": "delete", "c": 1}}) == {"a": {}}


def test_replace_directive_replaces_an_object() -> None:
    assert merge({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": {"d": None, "e": 1}}}) == {"a": {"c": {"e": 1}}}


def test_replace_directive_replaces_a_list() -> None:
    patch = {"list": [*named("c"), {"$patch": "replace"}, {"name": "a", "$patch": "delete"}]}
    assert merge({"list": named("a", "b")}, patch) == {"list": named("c")}
    assert merge({"list": named("a")}, {"list": [{"$patch": "replace"}]}) == {"list": []}


def test_retain_keys_removes_other_keys() -> None:
    current = {"choice": {"type": "Rolling", "rolling": {"max": 1}}}
    patch = {"choice": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert merge(current, patch) == {"choice": {"type": "Recreate"}}


def test_retain_keys_must_contain_all_patched_keys() -> None:
    assert merge({"choice": {"a": 1}}, {"choice": {"$retainKeys": ["b"], "a": None, "b": 2}}) == {"choice": {"b": 2}}
    for wrong in ({"$retainKeys": ["a"], "b": 1}, {"$retainKeys": "a", "a": 1}):
        with pytest.raises(StrategicMergeError, match=r"\$retainKeys") as caught:
            merge({"choice": {"a": 1}}, {"choice": wrong})
        assert caught.value.code == 400


def test_delete_from_primitive_list_removes_values() -> None:
    current = {"tags": ["a", "b", "c"]}
    assert merge(current, {"$deleteFromPrimitiveList/tags": ["b", "z"]}) == {"tags": ["a", "c"]}
    assert merge(current, {"$deleteFromPrimitiveList/tags": ["b"], "tags": ["n"]}) == {"tags": ["n", "a", "c"]}
    assert merge({}, {"$deleteFromPrimitiveList/tags": ["b"]}) == {}


def test_primitive_list_has_no_duplicates() -> None:
    assert merge({"tags": ["a", "b"]}, {"tags": ["b", "c", "c"]}) == {"tags": ["a", "b", "c"]}


def test_directives_are_removed_from_added_values() -> None:
    added: dict[str, Any] = {
        "$retainKeys": ["list", "x"],
        "x": {"$patch": "replace", "y": 1, "z": None},
        "list": [{"name": "a", "$patch": "delete"}, {"name": "b", "q": None, "$setElementOrder/below": []}],
        "$setElementOrder/list": named("b"),
        "$deleteFromPrimitiveList/tags": ["t"],
    }
    assert merge({}, {"new": added}) == {"new": {"x": {"y": 1}, "list": named("b")}}
    assert merge({"new": 1}, {"new": added}) == {"new": {"x": {"y": 1}, "list": named("b")}}
    assert merge({"list": named("a")}, {"list": [{"name": "b", "x": {"$patch": "delete"}}]})["list"][0]["x"] == {}


_REFUSED: list[tuple[dict[str, Any], int]] = [
    ({"list": [{"x": 1}]}, 500),
    ({"list": [{"$patch": "delete"}]}, 500),
    ({"list": [{"name": "a", "$patch": "merge"}]}, 500),
    ({"list": [{"name": "a", "$patch": "nonsense"}]}, 500),
    ({"list": [{"name": "a", "$patch": {"x": 1}}]}, 500),
    ({"list": [5]}, 500),
    ({"list": [[]]}, 422),
    ({"choice": {"$patch": "nonsense"}}, 500),
    ({"$patch": 5}, 500),
    ({"$setElementOrder/list": "x"}, 400),
    ({"$setElementOrder/list": None}, 400),
    ({"$setElementOrder/list": [{"x": 1}]}, 500),
    ({"$setElementOrder/choice": ["x"]}, 400),
    ({"$deleteFromPrimitiveList/tags": "x"}, 400),
    ({"tags": [{"name": "x"}]}, 500),
]


@pytest.mark.parametrize(("patch", "code"), _REFUSED)
def test_invalid_patches_are_rejected(patch: dict[str, Any], code: int) -> None:
    current = {"list": named("a"), "choice": {"a": 1}, "tags": ["a"]}
    with pytest.raises(StrategicMergeError) as caught:
        merge(current, patch)
    assert caught.value.code == code


def test_booleans_are_not_numbers() -> None:
    assert merge({"tags": [1, 0]}, {"tags": [True]}) == {"tags": [True, 1, 0]}
    assert merge({"ports": [{"port": 1}]}, {"ports": [{"port": True}]}) == {"ports": [{"port": True}, {"port": 1}]}


_CONTAINERS = ("spec", "template", "spec", "containers")


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [
        (kinds.POD, ("spec", "containers"), "name"),
        (kinds.POD, ("spec", "volumes"), "name"),
        (kinds.POD, ("spec", "hostAliases"), "ip"),
        (kinds.POD, ("spec", "topologySpreadConstraints"), "topologyKey"),
        (kinds.POD, ("spec", "imagePullSecrets"), "name"),
        (kinds.POD, ("status", "podIPs"), "ip"),
        (kinds.POD, ("status", "conditions"), "type"),
        (kinds.DEPLOYMENT, (*_CONTAINERS, "env"), "name"),
        (kinds.DEPLOYMENT, (*_CONTAINERS, "ports"), "containerPort"),
        (kinds.DEPLOYMENT, (*_CONTAINERS, "volumeMounts"), "mountPath"),
        (kinds.STATEFUL_SET, (*_CONTAINERS, "volumeDevices"), "devicePath"),
        (kinds.DAEMON_SET, ("spec", "template", "spec", "initContainers"), "name"),
        (kinds.JOB, _CONTAINERS, "name"),
        (kinds.REPLICA_SET, _CONTAINERS, "name"),
        (kinds.REPLICATION_CONTROLLER, _CONTAINERS, "name"),
        (kinds.POD_TEMPLATE, ("template", "spec", "containers"), "name"),
        (kinds.CRON_JOB, ("spec", "jobTemplate", "spec", "template", "spec", "containers"), "name"),
        (kinds.SERVICE, ("spec", "ports"), "port"),
        (kinds.SERVICE_ACCOUNT, ("secrets",), "name"),
        (kinds.NODE, ("status", "addresses"), "type"),
        (kinds.DEPLOYMENT, ("status", "conditions"), "type"),
        (kinds.CONFIG_MAP, ("metadata", "ownerReferences"), "uid"),
        (kinds.MUTATING_WEBHOOK_CONFIGURATION, ("webhooks",), "name"),
    ],
)
def test_merge_keys_of_built_in_kinds(kind: Any, path: tuple[str, ...], key: str) -> None:
    rule = rules_of(kind)
    for field in path:
        rule = rule.below(field)
    assert rule.patch_key == key


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (kinds.POD, ("spec", "tolerations")),
        (kinds.POD, ("spec", "containers", "command")),
        (kinds.POD, ("spec", "containers", "args")),
        (kinds.POD, ("spec", "containers", "envFrom")),
        (kinds.INGRESS, ("spec", "rules")),
        (kinds.ROLE, ("rules",)),
        (kinds.SERVICE_ACCOUNT, ("imagePullSecrets",)),
        (kinds.STATEFUL_SET, ("spec", "volumeClaimTemplates")),
    ],
)
def test_lists_that_are_replaced(kind: Any, path: tuple[str, ...]) -> None:
    rule = rules_of(kind)
    for field in path:
        rule = rule.below(field)
    assert rule.patch_key is None


def test_finalizers_are_a_set_and_new_finalizers_come_first() -> None:
    current = {"metadata": {"finalizers": ["a"]}}
    patch = {"metadata": {"finalizers": ["b"]}}
    assert merge(current, patch, rules_of(kinds.CONFIG_MAP)) == {"metadata": {"finalizers": ["b", "a"]}}


def test_deployment_patched_by_kubectl() -> None:
    container = {"name": "c", "image": "web:1", "env": [{"name": "A", "value": "1"}], "args": ["-v"]}
    current: dict[str, Any] = {
        "spec": {
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
            "template": {"spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}},
        }
    }
    patch = {
        "spec": {
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "c"}, {"name": "c2"}],
                    "containers": [
                        {"name": "c", "image": "web:2", "env": [{"name": "B", "value": "2"}], "args": []},
                        {"name": "c2", "image": "side:1"},
                    ],
                    "volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}],
                }
            },
        }
    }
    spec = merge(current, patch, rules_of(kinds.DEPLOYMENT))["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert spec["template"]["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "web:2",
                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
                "args": [],
            },
            {"name": "c2", "image": "side:1"},
        ],
        "volumes": [{"name": "v", "configMap": {"name": "m"}}],
    }


_fields = st.dictionaries(st.sampled_from("xy"), st.integers(0, 2), max_size=2)
_item_lists = st.dictionaries(st.sampled_from("abcde"), _fields, max_size=5).flatmap(
    lambda found: st.permutations([{"name": name, **fields} for name, fields in found.items()])
)


@given(_item_lists, _item_lists)
def test_merged_list_has_unique_items_and_the_patch_wins(
    current: list[dict[str, Any]], patch: list[dict[str, Any]]
) -> None:
    result = merge({"list": current}, {"list": patch})["list"]
    old, new = {item["name"]: item for item in current}, {item["name"]: item for item in patch}
    assert {item["name"]: item for item in result} == {
        name: {**old.get(name, {}), **new.get(name, {})} for name in {*old, *new}
    }
    assert len(result) == len({*old, *new})
    assert [item["name"] for item in result if item["name"] in new] == [*new]
    assert [item["name"] for item in result if item["name"] not in new] == [name for name in old if name not in new]


@given(_item_lists, _item_lists, st.randoms(use_true_random=False))
def test_requested_order_is_kept(current: list[dict[str, Any]], patch: list[dict[str, Any]], random: Any) -> None:
    wanted = [item["name"] for item in patch]
    extra = [item["name"] for item in current if item["name"] not in wanted]
    order = wanted[:]
    for name in extra:
        order.insert(random.randint(0, len(order)), name)
    patched = {"list": patch, "$setElementOrder/list": named(*order)}
    assert [item["name"] for item in merge({"list": current}, patched)["list"]] == order


@given(_item_lists, _item_lists)
def test_patch_is_idempotent(current: list[dict[str, Any]], patch: list[dict[str, Any]]) -> None:
    once = merge({"list": current}, {"list": patch})
    assert merge(once, {"list": patch}) == once
