"""What is remembered of reconciles."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec

from deltaloop.api import kinds
from deltaloop.api.references import ObjectReference, Trigger
from deltaloop.api.resource import Resource
from deltaloop.runtime.core import review_answers
from deltaloop.runtime.core.history import (
    EACH,
    LIMIT,
    MOST_ANSWERS,
    MOST_BYTES,
    History,
    Reconciled,
)
from deltaloop.runtime.core.own_writes import OwnWrite
from deltaloop.runtime.core.review_answers import ReviewAnswers

CM = kinds.CONFIG_MAP


def resource(**fields: object) -> Resource:
    return Resource.from_dict({"metadata": {"name": "a", "namespace": "default"}, **fields}, CM)


POD = ObjectReference(api_version="v1", kind="Pod", namespace="default", name="p")


def run(key: str, number: int, *, controller: str = "foo", at: float = 0.0) -> Reconciled:
    before, after = resource(spec={}), resource(spec={"x": 1})
    made = OwnWrite(verb="patch", kind="v1/Service", key=key, uid="u", version="7", before=before, after=after)
    return Reconciled(
        controller=controller,
        kind="example.com/v1/Foo",
        key=key,
        number=number,
        ended_at=at,
        seconds=0.5,
        attempt=1,
        result="success",
        error="",
        triggers=(Trigger(source="watch", verb="update", reference=POD, origin="self, reconcile 1"),),
        triggers_dropped=0,
        writes=(made,),
        writes_dropped=0,
    )


def numbers(history: History, kind: str, *keys: str) -> list[int]:
    return [found.number for found in history.about(kind, frozenset(keys))]


def test_history_finds_reconciles_of_object_caused_by_it_and_writing_it() -> None:
    history = History()
    history.add(run("default/a", 1, at=1.0))
    history.add(run("default/b", 2, at=2.0))
    history.add(run("default/a", 3, at=3.0))
    assert numbers(history, "", "default/a", "a") == [3, 1]
    for kind in ("Foo", "foo", "foos", "example.com/v1/Foo", "v1/service", "services"):
        assert numbers(history, kind, "default/a") == [3, 1]
    history.add(run("default/c", 4, controller="Mine", at=4.0))
    assert numbers(history, "mine", "default/c") == [4], "a controller's name"
    assert numbers(history, "mine", "default/a") == []
    assert numbers(history, "pod", "default/p") == [4, 3, 2, 1]
    assert numbers(history, "", "default/p") == []
    assert numbers(history, "secret", "default/a") == []
    [latest, _] = history.about("foo", frozenset({"default/a"}))
    assert latest.to_dict(now=4.0) == {
        "controller": "foo",
        "key": "default/a",
        "reconcile": 3,
        "secondsAgo": 1.0,
        "seconds": 0.5,
        "attempt": 1,
        "cleanup": False,
        "result": "success",
        "decision": "done",
        "error": "",
        "triggers": ["watch update Pod default/p by self, reconcile 1"],
        "triggersDropped": 0,
        "writes": [
            {
                "verb": "patch",
                "kind": "v1/Service",
                "key": "default/a",
                "subresource": "",
                "version": "7",
                "paths": ["spec.x"],
            }
        ],
        "writesDropped": 0,
    }


def test_changed_paths_are_computed_on_demand_and_old_objects_are_dropped() -> None:
    history, large = History(), "x" * (MOST_BYTES // 20)
    writes: list[OwnWrite] = []
    for number in range(12):
        before, after = resource(data={"a": large}), resource(data={"a": f"{number}{large}"})
        of: dict[str, Any] = {"kind": "v1/ConfigMap", "key": "x", "uid": "u", "version": "1"}
        writes.append(OwnWrite(verb="patch", before=before, after=after, **of))
        history.add(msgspec.structs.replace(run(f"default/{number}", number), writes=(writes[-1],)))
    known = [write.paths for write in writes]
    kept = [obj for write in writes for obj in (write.before, write.after) if obj is not None]
    assert sum(obj.stored_size for obj in kept) <= MOST_BYTES
    assert known == [None] * 3 + [("data.a",)] * 9
    [oldest] = history.about("", frozenset({"default/0"}))
    assert [write["paths"] for write in oldest.to_dict(now=0.0)["writes"]] == [None]
    assert large not in repr(history.about("", frozenset({"default/11"})))


def test_history_bounds_keys_reconciles_and_results() -> None:
    history, keys = History(), LIMIT + 2
    for number in range(2 * keys):
        history.add(run(f"default/{number % keys}", number, at=number))
    assert len(history) == LIMIT
    assert numbers(history, "", f"default/{keys - 1}") == [2 * keys - 1]
    assert numbers(history, "", "default/1") == []
    again = History()
    for number, key in enumerate(["a", "b", *map(str, range(LIMIT - 2)), "a", "c"]):
        again.add(run(f"default/{key}", number, at=number))
    assert numbers(again, "", "default/a", "default/b") == [LIMIT, 0], "b has not run for longest"
    few = History()
    for number in range(EACH + 3):
        few.add(run("default/a", number, at=number))
    assert numbers(few, "", "default/a") == [*range(EACH + 2, 2, -1)]
    many = History()
    for number in range(200):
        many.add(run(f"default/{number}", number, at=number))
    assert numbers(many, "pod", "default/p") == [*range(199, 199 - MOST_ANSWERS, -1)]
    assert (EACH, LIMIT, MOST_ANSWERS) == (8, 1000, 50)


def test_token_review_results_expire_and_are_bounded() -> None:
    answers = ReviewAnswers()
    answers.keep((b"a", "/metrics"), True, 0.0)
    assert answers.get((b"a", "/metrics"), 9.9) is True
    assert answers.get((b"a", "/other"), 9.9) is None
    assert len(answers) == 1
    assert answers.get((b"a", "/metrics"), 10.0) is None
    assert len(answers) == 0
    for number in range(review_answers.LIMIT + 1):
        answers.keep((b"%d" % number, "/metrics"), False, 0.0)
    assert len(answers) == review_answers.LIMIT
    assert answers.get((b"0", "/metrics"), 3.0) is None
    assert answers.get((b"%d" % review_answers.LIMIT, "/metrics"), 3.0) is False


def test_history_of_key_needs_less_than_500_bytes() -> None:
    """A deque for each key takes half a KiB however empty, which Python's own allocator does not carry."""
    runs = [run(str(number), number) for number in range(LIMIT)]
    history = History()
    tracemalloc.start()
    try:
        for each in runs:
            history.add(each)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(history) == LIMIT
    assert held / LIMIT < 500, f"{held / LIMIT:.0f} bytes for each key"
