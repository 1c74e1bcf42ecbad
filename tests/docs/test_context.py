"""The generated page of ``ctx`` is complete."""

from __future__ import annotations

import pytest
from tools.site import context

from deltaloop.runtime import ReconcileClient


def test_each_object_of_the_context_has_a_section() -> None:
    assert context.missing_parts() == []


def test_a_missing_section_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(context.PARTS, "ctx.client")
    monkeypatch.delitem(context.PARTS, "ctx.recorder")
    assert {*context.missing_parts()} == {"client", "recorder"}


def test_methods_are_shown_as_calls() -> None:
    calls = [call for call, _ in context.members(ReconcileClient)]
    assert "await get(kind, name, *, namespace=None, subresource=None, timeout=None) -> T" in calls
    assert any(call.startswith("async with watch(kind, *, namespace=None") for call in calls)
    assert any(call.startswith("async for each in iter_list(") for call in calls)


def test_each_member_has_a_description() -> None:
    for cls, _ in context.PARTS.values():
        assert [call for call, line in context.members(cls) if not line] == []
