"""docs/context.md says what ``ctx`` has: it is made from the code, and nothing is missing on it."""

from __future__ import annotations

import pytest
from tools.context_page import __main__ as context_page

from deltaloop.runtime import ReconcileClient


def test_the_page_says_what_the_code_does() -> None:
    page = context_page.PAGE.read_text(encoding="utf-8")
    assert context_page.written(page) == page, "docs/context.md is behind the code: run `make generate`"


def test_all_that_hangs_on_the_context_has_a_part() -> None:
    assert context_page.missing_parts() == []


def test_a_part_that_is_left_out_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(context_page.PARTS, "ctx.client")
    monkeypatch.delitem(context_page.PARTS, "ctx.recorder")
    assert {*context_page.missing_parts()} == {"client", "recorder"}


def test_a_method_stands_as_it_is_called() -> None:
    calls = [call for call, _ in context_page.members(ReconcileClient)]
    assert "await get(kind, name, *, namespace=..., subresource=..., timeout=...) -> T" in calls
    assert any(call.startswith("async with watch(kind, *, namespace=None") for call in calls)
    assert any(call.startswith("async for each in iter_list(") for call in calls)


def test_each_member_has_its_line() -> None:
    for cls, _ in context_page.PARTS.values():
        assert [call for call, line in context_page.members(cls) if not line] == []
