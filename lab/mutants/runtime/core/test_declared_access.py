"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_declared_access`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_declared_access import differences

from deltaloop.runtime.core.declared_access import DeclaredAccess
from lab.mutants.edited import edited


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        ("place in places or _EVERYWHERE in places", "place in places"),
        ("not kind.namespaced or place in places or _EVERYWHERE in places", "True"),
        ('for asked in (verb, "*")', "for asked in (verb,)"),
        ('f"{kind.plural}/{subresource}" if subresource else kind.plural', "kind.plural"),
        ("(kind.group, resource, asked)", '("", resource, asked)'),
    ],
)
def test_a_seeded_bug_is_seen(was: str, is_now: str) -> None:
    wrong = edited("Wrong", DeclaredAccess, (was, is_now))
    assert differences(wrong)
