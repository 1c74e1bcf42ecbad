"""One list in pages."""

from __future__ import annotations

from deltaloop.api.list_options import ListOptions
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.reflector.rounds import ListRound
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError
from tests.cache.objects import nameless, pod


def test_later_page_is_requested_by_token_without_version() -> None:
    first = ListOptions(resource_version="5", resource_version_match="NotOlderThan", limit=2, label_selector="a=b")
    round_ = ListRound.begin(first)
    assert (round_.options, round_.in_full) == (first, False)
    assert not round_.take(ResourceList((pod("a"),), "7", "next"))
    assert round_.options == ListOptions(limit=2, label_selector="a=b", continue_="next")


def test_unreadable_items_are_skipped_counted_and_named() -> None:
    one, other = UnreadableItemError("first", key="default/x"), UnreadableItemError("second", key="default/y")
    round_ = ListRound.begin(ListOptions())
    assert not round_.take(ResourceList((pod("a"), nameless()), "7", "next", unreadable=(one,)))
    assert round_.take(ResourceList((pod("b"),), "8", unreadable=(other,)))
    listed = round_.whole()
    assert ([item.name for item in listed.items], listed.resource_version, listed.skipped) == (["a", "b"], "7", 3)
    assert listed.first_error is one
    assert listed.unread == Unread(frozenset({"default/x", "default/y"}), is_any=False)


def test_unreadable_item_without_key_may_be_any_object() -> None:
    round_ = ListRound.begin(ListOptions())
    known, unknown = UnreadableItemError("first", key="default/x"), UnreadableItemError("second")
    round_.take(ResourceList((pod("a"),), "7", unreadable=(known, unknown)))
    assert round_.whole().unread == Unread(frozenset({"default/x"}), is_any=True)
