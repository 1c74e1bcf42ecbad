"""Echoes: the events that runs of one key caused, and nothing else."""

from __future__ import annotations

import pytest

from deltaloop.api.references import ObjectReference, Trigger
from deltaloop.runtime.core.attribution import Attribution


def event(old: str, new: str, *, verb: str = "update", uid: str = "u") -> Trigger:
    return Trigger("informer", verb, ObjectReference(uid=uid), old, new)


def attribution() -> Attribution:
    """Return what runs of ``ns/a`` and others wrote; version 5 of ``u`` is of another writer."""
    known = Attribution()
    for base, version in (("3", "4"), ("5", "6"), ("6", "7")):
        known.wrote("u", version, controller="maps", number=9, key="ns/a", base=base)
    known.wrote("new", "8", controller="maps", number=9, key="ns/a", base="")
    known.wrote("new", "9", controller="maps", number=9, key="ns/a", base="8")
    known.wrote("uncached", "8", controller="maps", number=9, key="ns/a", base=None)
    known.wrote("late", "8", controller="maps", number=9, key="ns/a", base="8")
    known.wrote("old", "2", controller="maps", number=8, key="ns/a", base="1")
    known.wrote("other", "2", controller="maps", number=10, key="ns/b", base="1")
    known.deleted("gone", controller="maps", number=9, key="ns/a")
    return known


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (event("3", "4"), True),
        (event("5", "7"), True),
        (event("4", "6"), False),
        (event("3", "7"), False),
        (event("4", "5"), False),
        (event("7", "7", verb="resync"), False),
        (event("", "8", verb="add", uid="new"), True),
        (event("", "9", verb="add", uid="new"), True),
        (event("", "8", verb="initial", uid="new"), False),
        (event("3", "8", uid="new"), False),
        (event("5", "8", uid="uncached"), True),
        (event("7", "8", uid="late"), True),
        (event("1", "2", uid="old"), False),
        (event("1", "2", uid="other"), False),
        (event("7", "", verb="delete", uid="gone"), True),
        (event("7", "", verb="delete-missed", uid="gone"), True),
        (event("7", "", verb="delete"), False),
        (Trigger("timer", "tick"), False),
    ],
    ids=str,
)
def test_event_is_an_echo_if_runs_of_the_key_made_all_of_its_versions(trigger: Trigger, expected: bool) -> None:
    assert attribution().is_echo(trigger, controller="maps", key="ns/a", since=9) is expected
    assert not attribution().is_echo(trigger, controller="others", key="ns/a", since=9)


def test_label_names_the_range_in_a_sharded_program() -> None:
    known = attribution()
    known.range_of = {"ns/a": "8000000000000000", "ns/b": ""}.__getitem__
    labelled = known.labelled([event("5", "6"), event("1", "2", uid="other"), event("1", "2")], controller="maps")
    assert [each.origin for each in labelled] == ["self, reconcile 9, range 8000000000000000", "self, reconcile 10", ""]


def test_cycle_of_base_versions_ends() -> None:
    known = Attribution()
    known.wrote("u", "1", controller="maps", number=1, key="ns/a", base="2")
    known.wrote("u", "2", controller="maps", number=1, key="ns/a", base="1")
    assert not known.is_echo(event("9", "1"), controller="maps", key="ns/a", since=1)
