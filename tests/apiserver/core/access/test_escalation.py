"""Escalation: what a rule grants is held, for every request of a small world, or it is named as missing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from deltaloop.apiserver.core.access import rbac
from deltaloop.apiserver.core.access.rbac import EVERYTHING, Rule, compact_rules, describe_rule, missing_rules
from deltaloop.apiserver.core.user import Attributes, User

BOB = User(name="bob")
VERBS, GROUPS, NAMES = ("get", "list"), ("", "apps"), ("x", "y")
RESOURCES = ("pods", "pods/log", "pods/status", "secrets/log")
PATHS = ("/a", "/a/b", "/c")
REQUESTS = [
    Attributes(
        user=BOB, verb=verb, group=group, resource=full.partition("/")[0], subresource=full.partition("/")[2], name=name
    )
    for verb, group, full, name in itertools.product(VERBS, GROUPS, RESOURCES, ("", *NAMES))
] + [Attributes(user=BOB, verb=verb, path=path) for verb, path in itertools.product(VERBS, PATHS)]


def some(chance: Random, values: Iterable[str], *, least: int = 1) -> tuple[str, ...]:
    return tuple(chance.sample([*values], chance.randint(least, 2)))


def some_rule(chance: Random, *, stars: bool) -> Rule:
    star = ("*",) if stars else ()
    verbs = some(chance, (*VERBS, *star))
    if chance.random() < 0.3:
        return Rule(verbs=verbs, paths=some(chance, (*PATHS, "*", "/a*", "/a/*") if stars else PATHS))
    return Rule(
        verbs=verbs,
        groups=some(chance, (*GROUPS, *star)),
        resources=some(chance, (*RESOURCES, *(("*", "*/log") if stars else ()))),
        names=some(chance, NAMES, least=0),
    )


def some_rules(chance: Random, *, stars: bool) -> list[Rule]:
    return [some_rule(chance, stars=stars) for _ in range(chance.randint(0, 2))]


def allowed(held: Iterable[Rule]) -> set[int]:
    listed = list(held)
    return {number for number, request in enumerate(REQUESTS) if any(rule.allows(request) for rule in listed)}


def check_sound(held: list[Rule], granted: list[Rule]) -> None:
    """What is not named as missing is held; what is named is granted."""
    missing = missing_rules(held, granted)
    assert allowed(granted) <= allowed(held) | allowed(missing)
    assert allowed(missing) <= allowed(granted)
    assert allowed(compact_rules(missing)) == allowed(missing)
    assert missing_rules(granted, granted) == missing_rules(EVERYTHING, granted) == ()


def check_complete(held: list[Rule], granted: list[Rule]) -> None:
    """Without stars, a rule without names stands for more than the names of this world: only a held one covers it."""
    parts = [replace(part, verbs=(verb,)) for part in missing_rules(held, granted) for verb in part.verbs]
    for part in parts:
        covered = [rule for rule in held if allowed([part]) <= allowed([rule]) and (part.names or not rule.names)]
        assert covered == [], part


def check_many_pairs() -> None:
    chance = Random(7)
    log = Rule(verbs=("get",), groups=("",), resources=("pods", "pods/log"))
    check_complete([replace(log, resources=("pods",))], [log])
    check_sound([replace(log, resources=("pods",))], [log])
    for _ in range(200):
        check_sound(some_rules(chance, stars=True), some_rules(chance, stars=True))
        check_complete(some_rules(chance, stars=False), some_rules(chance, stars=False))


def test_only_held_permissions_can_be_granted() -> None:
    check_many_pairs()


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


def no_stars(held: frozenset[str], wanted: tuple[str, ...]) -> bool:
    return set(wanted) <= set(held)


def subresources_come_with_the_object(held: frozenset[str], wanted: str) -> bool:
    return "*" in held or wanted in held or wanted.partition("/")[0] in held


def ignores_names(held: Any, part: Rule) -> bool:
    return _is_about(replace(held, names=frozenset()), part)


def ignores_paths(held: Any, part: Rule) -> bool:
    return _is_about(held, replace(part, paths=()))


def one_verb_only(rule: Rule) -> Any:
    return itertools.islice(_parts(rule), 1)


def without_names(rule: Rule) -> Any:
    return (replace(part, names=()) for part in _parts(rule))


def one_way(resource: str) -> tuple[str, ...]:
    return (resource,)


_is_about, _parts = rbac._is_about, rbac._parts


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("_covers", always),
        ("_is_about", always),
        ("_is_about", never),
        ("_is_about", ignores_names),
        ("_is_about", ignores_paths),
        ("_ways_to_say", one_way),
        ("_has_all", always),
        ("_has_all", no_stars),
        ("_has_resource", always),
        ("_has_resource", subresources_come_with_the_object),
        ("_parts", one_verb_only),
        ("_parts", without_names),
        ("path_matches", always),
        ("path_matches", never),
    ],
)
def test_seeded_bugs_are_detected(part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac, part, broken)
    with pytest.raises(AssertionError):
        check_many_pairs()


def test_rules_are_described_as_go_prints_them() -> None:
    rule = Rule(verbs=("get", "list"), groups=("",), resources=("pods",), names=('a"b',))
    assert describe_rule(rule) == '{APIGroups:[""], Resources:["pods"], ResourceNames:["a\\"b"], Verbs:["get" "list"]}'
    assert describe_rule(Rule(verbs=("get",), paths=("/a",))) == '{NonResourceURLs:["/a"], Verbs:["get"]}'
