"""Tokens of service accounts: one that is right in all respects holds, one that is wrong in any does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop.apiserver.core.access import service_tokens
from deltaloop.apiserver.core.access.service_tokens import TokenWish, bound_object, claims, user_of_claims
from deltaloop.apiserver.core.storage.store import RevisionStore

ISSUER = "https://issuer"
NOW = 1000.0
Change = Callable[[RevisionStore, dict[str, Any]], None]
ACCOUNT = {"metadata": {"name": "robot", "namespace": "a", "uid": "u1"}}
PLURALS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def key(kind: str) -> str:
    return "x" if kind == "Node" else "a/x"


def made_token(kind: str) -> tuple[RevisionStore, dict[str, Any]]:
    store = RevisionStore()
    account = store.create("serviceaccounts", "a/robot", ACCOUNT)
    wish = TokenWish((ISSUER,), 600)
    if kind:
        metadata = {"name": "x", "uid": "u2", **({} if kind == "Node" else {"namespace": "a"})}
        store.create(PLURALS[kind], key(kind), {"metadata": metadata, "spec": {"serviceAccountName": "robot"}})
        wish = TokenWish((ISSUER,), 600, kind, "x", "")
    bound = bound_object(store, wish, namespace="a", account="robot")
    return store, claims(account, wish, bound, issuer=ISSUER, identity="j", now=NOW)


def without_the_account(store: RevisionStore, _: dict[str, Any]) -> None:
    store.delete("serviceaccounts", "a/robot")


def another_account_of_that_name(store: RevisionStore, _: dict[str, Any]) -> None:
    store.delete("serviceaccounts", "a/robot")
    store.create("serviceaccounts", "a/robot", {"metadata": {**ACCOUNT["metadata"], "uid": "u9"}})


def of_another_issuer(_: RevisionStore, said: dict[str, Any]) -> None:
    said["iss"] = "https://other"


def without_what_it_is_bound_to(store: RevisionStore, said: dict[str, Any]) -> None:
    for kind, plural in PLURALS.items():
        if kind.lower() in said["kubernetes.io"]:
            store.delete(plural, key(kind))


def bound_to_another_of_that_name(store: RevisionStore, said: dict[str, Any]) -> None:
    for kind, plural in PLURALS.items():
        if kind.lower() in said["kubernetes.io"]:
            found = store.get(plural, key(kind))
            assert found is not None
            store.delete(plural, key(kind))
            store.create(plural, key(kind), {"metadata": {**found.to_dict()["metadata"], "uid": "u9"}})


def of_another_namespace(_: RevisionStore, said: dict[str, Any]) -> None:
    said["kubernetes.io"]["namespace"] = "b"


ALWAYS_WRONG: tuple[Change, ...] = (
    without_the_account,
    another_account_of_that_name,
    of_another_issuer,
    of_another_namespace,
)
WRONG_IF_BOUND: tuple[Change, ...] = (without_what_it_is_bound_to, bound_to_another_of_that_name)
TIMES = ((0.0, True), (-0.5, True), (-5.0, False), (599.0, True), (600.0, False), (1e6, False))


def check_every_token() -> None:
    for kind, (later, in_time) in itertools.product(("", *PLURALS), TIMES):
        for change in (None, *ALWAYS_WRONG, *WRONG_IF_BOUND):
            store, said = made_token(kind)
            if change is not None:
                change(store, said)
            holds = in_time and (change is None or (change in WRONG_IF_BOUND and not kind))
            user = user_of_claims(store, said, issuer=ISSUER, now=NOW + later)
            assert (user is not None) is holds, (kind, later, change)
            if user is not None:
                assert (user.name, user.uid) == ("system:serviceaccount:a:robot", "u1")
                assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated")


def test_valid_tokens_are_accepted_and_others_rejected() -> None:
    check_every_token()


def always_there(*_: object) -> bool:
    return True


def there_by_name_only(store: RevisionStore, plural: str, namespace: str, reference: dict[str, Any]) -> bool:
    return store.get(plural, f"{namespace}/{reference.get('name')}") is not None


def never_a_number(_: object) -> int:
    return 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("_is_there", always_there),
        ("_is_there", there_by_name_only),
        ("_BOUND", {}),
        ("_BOUND", {"Pod": "pods", "Secret": "secrets"}),
        ("_ACCOUNTS", "secrets"),
        ("integer", never_a_number),
    ],
)
def test_seeded_bugs_are_detected(part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_tokens, part, broken)
    with pytest.raises((AssertionError, KeyError)):
        check_every_token()
