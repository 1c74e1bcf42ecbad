"""What one write changed, and how it is shown."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.own_writes import MOST_PATHS, OwnWrite, changed_paths, path_text, show_changes


def obj(**spec: Any) -> Resource:
    return Resource.from_dict({"metadata": {"name": "a", "namespace": "n"}, "spec": spec})


def paths(before: Any, after: Any) -> list[str]:
    return [path_text(path) for path in changed_paths(obj(x=before), obj(x=after))]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([1, 2], [1, 3], ["spec.x[1]"]),
        ([1, 2], [1, 2, 3], ["spec.x"]),
        ([1, 2], {"a": 1}, ["spec.x"]),
        ({"a": 1}, [1, 2], ["spec.x"]),
        ("ab", ["a", "b"], ["spec.x"]),
        (["a", "b"], "ab", ["spec.x"]),
        ([1, 2], "ab", ["spec.x"]),
        ({"a": 1, "b": 2}, {"a": 1, "c": 2}, ["spec.x.b", "spec.x.c"]),
        ({"a.b": 1}, {"a.b": 2}, ["spec.x['a.b']"]),
        ({"a[b": 1}, {"a[b": 2}, ["spec.x['a[b']"]),
        (1, 1, []),
    ],
)
def test_changed_fields_are_reported_as_paths(before: Any, after: Any, changed: list[str]) -> None:
    assert paths(before, after) == changed


def test_fields_changed_by_every_write_are_ignored() -> None:
    def written(version: str, generation: int, **labels: str) -> Resource:
        metadata = {"name": "a", "resourceVersion": version, "generation": generation, "labels": labels}
        return Resource.from_dict({"metadata": {**metadata, "managedFields": [{"time": version}]}})

    assert changed_paths(written("1", 1), written("2", 2)) == ()
    assert changed_paths(written("1", 1, app="a"), written("2", 2, app="b")) == (("metadata", "labels", "app"),)
    nested = obj(metadata={"generation": 1}), obj(metadata={"generation": 2})
    assert changed_paths(*nested) == (("spec", "metadata", "generation"),)


def test_long_value_is_truncated() -> None:
    paths = [("spec", "x")]
    short, long = "s" * 60, "l" * 61
    assert show_changes(obj(x=short), obj(x=long), paths) == (f"spec.x: {short} -> {'l' * 57}...",)


def test_delete_is_known_change_with_subject() -> None:
    gone = OwnWrite(verb="delete", kind="v1/Pod", key="n/a", uid="u")
    assert (gone.is_known_change, gone.subject) == (True, ("v1/Pod", "n/a"))
    made = Resource.from_dict({"metadata": {"name": "a-1", "namespace": "n", "generateName": "a-"}})
    changed = OwnWrite(verb="update", kind="v1/Pod", key="n/a-1", uid="u", version="2", after=made)
    assert (changed.is_known_change, changed.subject) == (False, ("v1/Pod", "n/a-1"))
    assert OwnWrite(verb="create", kind="v1/Pod", key="n/a", uid="u").subject == ("v1/Pod", "n/a")


def test_changes_of_secrets_show_paths_without_values() -> None:
    def typed(known: ResourceType[Resource] | None, text: str, **more: str) -> Resource:
        fields = {"metadata": {"name": "a"}, "data": {"x": text}, **more}
        return Resource.from_dict(fields) if known is None else Resource.from_dict(fields, known)

    plain, secret = typed(kinds.CONFIG_MAP, "1"), typed(kinds.SECRET, "planted")
    said = typed(None, "planted", kind="Secret", apiVersion="v1")
    paths = [("data", "x")]
    for before, after in ((plain, secret), (secret, plain), (secret, secret), (plain, said), (said, plain)):
        assert show_changes(before, after, paths) == ("data.x",)
    assert show_changes(plain, plain, paths) == ("data.x: 1 -> 1",)


def test_missing_object_has_no_changed_paths() -> None:
    assert changed_paths(None, obj()) == changed_paths(obj(), None) == changed_paths(None, None) == ()
    some = (("spec", "x"),)
    assert show_changes(None, obj(x=1), some) == show_changes(obj(x=1), None, some) == ("spec.x",)


def test_number_of_changed_paths_is_limited() -> None:
    before, after = {f"f{n}": 0 for n in range(30)}, {f"f{n}": 1 for n in range(30)}
    assert len(changed_paths(obj(**before), obj(**after))) == MOST_PATHS == 20
    assert len(changed_paths(obj(**before), obj(**after), limit=3)) == 3


@pytest.mark.parametrize("of_lists", [False, True])
def test_paths_end_at_depth_of_50(of_lists: bool) -> None:
    def nested(leaf: int) -> Any:
        value: Any = leaf
        for _ in range(60):
            value = [value] if of_lists else {"d": value}
        return value

    [path] = changed_paths(obj(x=nested(1)), obj(x=nested(2)))
    assert len(path) == 50


def test_objects_with_generated_names_share_subject() -> None:
    def made(**metadata: Any) -> OwnWrite:
        after = Resource.from_dict({"metadata": {"name": "a-x1", "namespace": "n", **metadata}})
        return OwnWrite(verb="create", kind="v1/Pod", key="n/a-x1", uid="u", after=after)

    assert made(generateName="a-").subject == ("v1/Pod", "n/a-*")
    assert made().subject == ("v1/Pod", "n/a-x1")
