"""Which changes pass."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.runtime.core.changes import Change, Predicate
from deltaloop.runtime.core.predicates import (
    And,
    AnnotationsChanged,
    GenerationChanged,
    HasLabels,
    LabelsChanged,
    Not,
    Or,
    PathChanged,
    ResourceVersionChanged,
    When,
    Where,
)
from tests.having import having


def obj(version: int = 1, *, generation: int = 1, spec: Any = None, **metadata: Any) -> Resource:
    named = {"name": "a", "namespace": "n", "resourceVersion": str(version), "generation": generation, **metadata}
    return Resource.from_dict({"metadata": named, "spec": spec or {}})


def update(old: Resource, new: Resource) -> Change:
    return Change(verb="update", old=old, new=new)


ADD = Change(verb="add", old=None, new=obj())
DELETE = Change(verb="delete", old=obj(), new=None)
RESYNC = update(obj(1), obj(1))
STATUS_ONLY = update(obj(1), obj(2))


@pytest.mark.parametrize(
    "predicate",
    [GenerationChanged(), LabelsChanged(), AnnotationsChanged(), ResourceVersionChanged(), PathChanged("spec.x")],
)
def test_add_and_delete_pass_but_resync_does_not(predicate: Predicate) -> None:
    assert predicate.allows(ADD)
    assert predicate.allows(DELETE)
    assert not predicate.allows(RESYNC)
    assert not (~predicate).allows(ADD)


@pytest.mark.parametrize(
    ("predicate", "old", "new"),
    [
        (GenerationChanged(), obj(1, generation=1), obj(2, generation=2)),
        (LabelsChanged(), obj(1, labels={"a": "1"}), obj(2, labels={"a": "2"})),
        (AnnotationsChanged(), obj(1, annotations={}), obj(2, annotations={"a": "2"})),
        (ResourceVersionChanged(), obj(1), obj(2)),
        (PathChanged("spec.replicas"), obj(1, spec={"replicas": 1}), obj(2, spec={"replicas": 2})),
        (PathChanged("spec.a", "spec.b"), obj(1, spec={"b": 1}), obj(2, spec={})),
    ],
)
def test_change_of_observed_aspect_passes(predicate: Predicate, old: Resource, new: Resource) -> None:
    assert predicate.allows(update(old, new))
    assert isinstance(predicate, ResourceVersionChanged) or not predicate.allows(STATUS_ONLY)


def test_path_predicate_decodes_only_its_fields() -> None:
    # A number that no float holds is passed over, and refused where it is decoded.
    one = Resource.from_json(b'{"metadata":{"name":"a"},"spec":{"replicas":1,"junk":1e999}}')
    assert not PathChanged("spec.replicas").allows(update(one, one))
    with pytest.raises(MalformedObjectError, match="out of range"):
        one.to_dict()


def test_object_that_leaves_selection_passes_once_more() -> None:
    web, api = obj(1, labels={"app": "web"}), obj(2, labels={"app": "api"})
    predicate = HasLabels("app=web")
    assert predicate.allows(update(web, api))
    assert predicate.allows(update(api, web))
    assert not predicate.allows(update(api, api))
    assert not Where(lambda one: one.labels.get("app") == "web").allows(update(api, api))
    assert When(lambda change: change.verb == "update").allows(update(api, api))


def test_predicates_combine() -> None:
    yes, no = When(lambda _: True), When(lambda _: False)
    assert (yes & yes).allows(ADD)
    assert not (yes & no).allows(ADD)
    assert (no | yes).allows(ADD)
    assert not (no | no).allows(ADD)
    assert (~no).allows(ADD)
    assert And().allows(ADD)
    assert not Or().allows(ADD)
    assert Not(no).allows(ADD)
    shown = repr(GenerationChanged() & ~HasLabels("a=b") | PathChanged("spec.x"))
    assert shown == "((GenerationChanged() & ~HasLabels('a=b')) | PathChanged('spec.x'))"


def test_a_path_predicate_needs_a_path() -> None:
    with pytest.raises(ValueError, check=having(argument="PathChanged.paths")):
        PathChanged()


def test_predicate_function_receives_existing_objects_only() -> None:
    asked: list[str] = []

    def elsewhere(found: Resource) -> bool:
        asked.append(found.name)
        return False

    assert not Where(elsewhere).allows(ADD)
    assert not Where(elsewhere).allows(DELETE)
    assert asked == ["a", "a"]


@pytest.mark.parametrize("predicate", [Where, When])
def test_async_predicate_is_rejected(predicate: Any) -> None:
    async def waits(_: object) -> bool:
        return False

    with pytest.raises(InvalidArgumentError, check=having(argument=f"{predicate.__name__}.function")):
        predicate(waits)
