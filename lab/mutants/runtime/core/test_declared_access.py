"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_declared_access`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_declared_access import differences

from deltaloop.runtime.core.declared_access import DeclaredAccess
from lab.mutants.edited import edited

DECLARED = "places = self._places.get((kind.group, resource, asked), ())\n"
THERE = "            if _EVERYWHERE in places or place in places or (places and not kind.namespaced):\n"


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        (f"{DECLARED}{THERE}", f"{DECLARED}            if place in places or (places and not kind.namespaced):\n"),
        (f"{DECLARED}{THERE}", f"{DECLARED}            if places:\n"),
        ('for asked in (verb, "*")', "for asked in (verb,)"),
        ('f"{kind.plural}/{subresource}" if subresource else kind.plural', "kind.plural"),
        ("(kind.group, resource, asked)", '("", resource, asked)'),
    ],
)
def test_seeded_bug_is_detected(was: str, is_now: str) -> None:
    wrong = edited("Wrong", DeclaredAccess, (was, is_now))
    assert differences(wrong)
