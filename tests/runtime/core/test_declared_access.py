"""What is declared passes and nothing else: compared with what the printed role would allow, in every small case."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core import declared_access
from deltaloop.runtime.core.access import AccessRule, Permission, roles, rules_for
from deltaloop.runtime.core.declared_access import DeclaredAccess
from tests.having import having

WIDGET = ResourceType[Resource]("example.com", "v1", "Widget", "widgets")
KINDS: tuple[ResourceType[Any], ...] = (kinds.SECRET, kinds.NODE, WIDGET)
VERBS = ("get", "list", "create", "patch", "deletecollection")
PLACES = (None, "a", "b")
PARTS = ("", "status")
EXACT = "dl.Permission('v1/Secret', verbs=('{}',))"


def role_allows(documents: list[dict[str, Any]], asked: AccessRule) -> bool:
    """Tell what RBAC would say, by the roles alone."""
    for role in documents:
        place = role["metadata"].get("namespace", "")
        if place and place != asked.namespace:
            continue
        for rule in role["rules"]:
            if (
                asked.group in rule["apiGroups"]
                and asked.resource in rule["resources"]
                and {asked.verb, "*"} & {*rule["verbs"]}
            ):
                return True
    return False


def differences(declared: type[DeclaredAccess]) -> list[str]:
    """Return where what is declared and what its role would allow are not the same."""
    found: list[str] = []
    for kind, verb, place, part in product(KINDS, (*VERBS, "*"), PLACES, PARTS):
        rules = rules_for(kind, (verb,), namespace=place, subresource=part)
        documents, present = roles(rules, name="r"), declared(rules)
        for other, asked, where, piece in product(KINDS, VERBS, PLACES, PARTS):
            wanted = rules_for(other, (asked,), namespace=where, subresource=piece)[0]
            passes = present.undeclared(asked, other, where, piece) is None
            if passes != role_allows(documents, wanted):
                found.append(f"declared {rules[0]}, asked {wanted}: {passes}")
    return found


def test_declared_access_equals_access_of_role() -> None:
    assert differences(DeclaredAccess) == []


def test_unknown_kind_can_be_declared_by_name() -> None:
    declared = DeclaredAccess([], [(Permission("example.com/v1/Widget", verbs=("create",)), "a")])
    assert declared.undeclared("create", WIDGET, "a", "") is None
    assert str(declared.undeclared("create", WIDGET, "b", "")) == "create example.com/v1/Widget in namespace b"
    assert declared.undeclared("patch", WIDGET, "a", "") is not None
    cluster = ResourceType[Resource]("example.com", "v1", "Widget", "widgets", namespaced=False)
    assert declared.undeclared("create", cluster, None, "") is None, "nobody knew that it has no namespaces"
    exact = DeclaredAccess([], [(Permission("example.com/v1/Widget", verbs=("patch",), subresource="status"), None)])
    assert exact.undeclared("patch", WIDGET, "a", "status") is None
    assert exact.undeclared("patch", WIDGET, "a", "") is not None


def test_self_subject_access_review_needs_no_declaration() -> None:
    review = ResourceType[Resource](
        "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
    )
    assert DeclaredAccess([]).undeclared("create", review, None, "") is None


@pytest.mark.parametrize(
    ("verb", "part", "remedy"),
    [
        (
            "create",
            "",
            f"add 'v1/Secret' to writes=[...], or, only for this verb, {EXACT.format('create')}",
        ),
        (
            "get",
            "",
            f"add {EXACT.format('get')} to writes=[...], or 'v1/Secret' to reads=[...], which caches them",
        ),
        ("patch", "status", "add dl.Permission('v1/Secret', verbs=('patch',), subresource='status') to writes=[...]"),
        ("deletecollection", "", "add dl.Permission('v1/Secret', verbs=('deletecollection',)) to writes=[...]"),
    ],
)
def test_remedy_of_undeclared_access_is_valid_code(verb: str, part: str, remedy: str) -> None:
    needed = DeclaredAccess([]).undeclared(verb, kinds.SECRET, "a", part)
    assert needed is not None
    assert needed.remedy() == remedy
    written = eval(remedy[remedy.index("dl.") :].partition(" to ")[0], {"dl": declared_access})
    assert DeclaredAccess([], [(written, None)]).undeclared(verb, kinds.SECRET, "a", part) is None


@pytest.mark.parametrize(
    ("verbs", "named"),
    [
        (("updates",), "'updates'.* 'update'"),
        (("delete_collection",), "'delete_collection'.* 'deletecollection'"),
        (("apply",), "'apply'"),
        ((), r"\(\)"),
        ("create", "'create'"),
    ],
)
def test_unknown_verb_is_rejected_in_declaration(verbs: Any, named: str) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="verbs of Permission('v1/Secret')"), match=named):
        Permission("v1/Secret", verbs=verbs)


@pytest.mark.parametrize("verb", ["*", "approve", "bind", "escalate", "impersonate", "use", "watch"])
def test_special_verbs_of_kubernetes_are_valid(verb: str) -> None:
    assert Permission("v1/Secret", verbs=(verb,)).verbs == (verb,)
