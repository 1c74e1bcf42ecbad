"""What a write leaves in the store that nobody reads: the next write of the same is one, and only the next."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.writes.stored_forms import NOTHING, StoredForms, hidden_in
from tests.apiserver.core.custom_resources import served_foo

FOO = served_foo()


def built_in(plural: str) -> ServedResource:
    served = Registry().find("", "v1", plural)
    assert served is not None
    return served


@pytest.mark.parametrize("empty", [{"labels": {}}, {"annotations": None}, {"finalizers": []}, {"ownerReferences": []}])
def test_empty_metadata_of_what_is_applied(empty: dict[str, Any]) -> None:
    sent = {"metadata": {"name": "a", **empty}}
    assert hidden_in(FOO, sent, applied=True) == {*empty}
    assert hidden_in(FOO, sent, applied=False) == NOTHING
    assert hidden_in(built_in("configmaps"), sent, applied=True) == NOTHING
    assert hidden_in(FOO, {"metadata": {"labels": {"a": "b"}}}, applied=True) == NOTHING


@pytest.mark.parametrize("applied", [True, False])
def test_nulls_among_bytes(applied: bool) -> None:
    values = {"a": None, "b": "", "c": "YQ=="}
    assert hidden_in(built_in("secrets"), {"data": values}, applied=applied) == {"a"}
    assert hidden_in(built_in("configmaps"), {"binaryData": values, "data": {"x": None}}, applied=applied) == {"a"}
    assert hidden_in(built_in("secrets"), {"data": 1}, applied=applied) == NOTHING
    assert hidden_in(built_in("pods"), {"data": values}, applied=applied) == NOTHING


def test_the_next_write_differs_once() -> None:
    forms = StoredForms()
    assert forms.differs("u", frozenset({"labels"}))
    assert not forms.differs("u", frozenset({"labels"}))
    assert forms.differs("u", NOTHING)
    assert not forms.differs("u", NOTHING)


def test_objects_are_told_apart_and_forgotten() -> None:
    forms = StoredForms()
    forms.differs("u", frozenset({"labels"}))
    assert not forms.differs("v", NOTHING)
    forms.forget("u")
    assert not forms.differs("u", NOTHING)
