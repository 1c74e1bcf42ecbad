"""Empty metadata that an apply leaves in the store: the next write is one, and only the next."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.stored_forms import StoredForms
from tests.apiserver.core.custom_resources import served_foo

FOO = served_foo()


def _applied(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}}


@pytest.mark.parametrize("empty", [{"labels": {}}, {"annotations": None}, {"finalizers": []}, {"ownerReferences": []}])
def test_the_next_write_differs_once(empty: dict[str, Any]) -> None:
    forms = StoredForms()
    assert forms.differs(FOO, "u", _applied(**empty))
    assert not forms.differs(FOO, "u", _applied(**empty))
    assert forms.differs(FOO, "u", None)
    assert not forms.differs(FOO, "u", None)


def test_objects_are_told_apart_and_forgotten() -> None:
    forms = StoredForms()
    forms.differs(FOO, "u", _applied(labels={}))
    assert not forms.differs(FOO, "v", None)
    forms.forget("u")
    assert not forms.differs(FOO, "u", None)


def test_what_is_not_empty_is_no_matter() -> None:
    assert not StoredForms().differs(FOO, "u", _applied(labels={"a": "b"}))


def test_built_in_kinds_are_stored_without() -> None:
    served = Registry().find("", "v1", "configmaps")
    assert served is not None
    assert not StoredForms().differs(served, "u", _applied(labels={}))
