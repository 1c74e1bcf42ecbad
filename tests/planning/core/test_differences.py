"""Differences between two versions of an object."""

from __future__ import annotations

from deltaloop.planning.core.differences import field_changes


def changed(before: dict[str, object], after: dict[str, object]) -> dict[str, tuple[object, object]]:
    return {each.path: (each.before, each.after) for each in field_changes(before, after)}


def test_items_of_lists_are_compared_by_name() -> None:
    one, other = {"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}
    before: dict[str, object] = {"containers": [one, other]}
    after: dict[str, object] = {"containers": [{"name": "c"}, {**other, "image": "b:2"}, one]}
    assert changed(before, after) == {
        "containers[name=b].image": ("b:1", "b:2"),
        "containers[name=c]": (None, {"name": "c"}),
    }


def test_fields_of_the_server_are_no_changes() -> None:
    before: dict[str, object] = {"metadata": {"name": "a", "resourceVersion": "1", "generation": 1}}
    after: dict[str, object] = {"metadata": {"name": "a", "resourceVersion": "2", "managedFields": []}}
    assert changed(before, after) == {}


def test_values_of_secrets_are_redacted_and_still_a_change() -> None:
    def secret(value: str) -> dict[str, object]:
        return {"kind": "Secret", "data": {"password": value}}

    [change] = field_changes(secret("b25l"), secret("dHdv"))
    assert (change.path, change.redacted) == ("data.password", True)
    assert {change.before, change.after} == {"<redacted>"}


def test_hash_of_applied_fields_is_shown_only_if_it_changes_alone() -> None:
    def applied(value: str, size: int) -> dict[str, object]:
        return {"metadata": {"annotations": {"deltaloop.dev/applied-hash": value}}, "size": size}

    assert [*changed(applied("a", 1), applied("b", 2))] == ["size"]
    assert [*changed(applied("a", 1), applied("b", 1))] == ['metadata.annotations."deltaloop.dev/applied-hash"']
