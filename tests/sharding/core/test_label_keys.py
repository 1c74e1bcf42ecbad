"""Keys by label: members with delayed watches, whose objects change their labels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from deltaloop.api.resource import Resource
from deltaloop.api.shard_selector import HASH_SPACE, label_hash, shard_hash
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.core.label_keys import NOWHERE, LabelKeys
from tests.nightly import examples

VALUES = ("one", "two", "three", "four")
BOUNDS = sorted(shard_hash(value) for value in VALUES)
KEYS = ("n/a", "n/b")


def obj(key: str, version: int, value: str | None) -> Resource:
    namespace, _, name = key.rpartition("/")
    labels = {} if value is None else {"tenant": value}
    metadata = {"namespace": namespace, "name": name, "resourceVersion": f"{version}", "labels": labels}
    return Resource.from_dict({"metadata": metadata})


@dataclass
class Member:
    owned: KeyRanges
    running: set[str] = field(default_factory=set[str])
    at: int = 0
    published: int = 0
    asked: tuple[dict[str, int], int] | None = None
    stored: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.keys = LabelKeys("tenant", is_busy=self.running.__contains__)

    def may_begin(self, key: str) -> bool:
        return key not in self.running and self.keys.number_of(key) in self.owned and self.keys.may_begin(key)


class World:
    """Server with a log of changes, and members that receive it with delays. ``at`` counts the received changes."""

    def __init__(self, seed: int, trusts: Callable[[int], float]) -> None:
        half = (BOUNDS[1] + BOUNDS[2]) // 2
        self.random = Random(seed)
        self.members = [Member(KeyRanges([(0, half)])), Member(KeyRanges([(half, HASH_SPACE)]))]
        self.log: list[WatchEvent] = []
        self.objects: dict[str, Resource] = {}
        self.trusts = trusts

    def change(self) -> None:
        key, version = self.random.choice(KEYS), len(self.log) + 1
        before = self.objects.get(key)
        if before is not None and self.random.random() < 0.2:
            value = before.labels.get("tenant")
            del self.objects[key]
            self.log.append(WatchEvent(EventType.DELETED, obj(key, version, value)))
            return
        new = self.objects[key] = obj(key, version, self.random.choice([*VALUES, None]))
        self.log.append(WatchEvent(EventType.ADDED if before is None else EventType.MODIFIED, new))

    def deliver(self, each: Member) -> None:
        if each.at < len(self.log):
            event = self.log[each.at]
            each.at += 1
            selected = label_hash(event.object, "tenant") in each.owned
            followed = each.keys.follow(event, selected=selected)
            if followed is not None:
                self.store(each, followed.type is not EventType.DELETED, followed.object)

    def store(self, each: Member, exists: bool, found: Resource) -> None:
        if exists:
            each.stored[found.key] = found.version
        else:
            each.stored.pop(found.key, None)

    def list_again(self, each: Member) -> None:
        each.at, each.stored = len(self.log), {}
        for found in self.objects.values():
            if each.keys.listed(found, selected=label_hash(found, "tenant") in each.owned, whole=True):
                each.stored[found.key] = found.version
        each.keys.replaced(each.stored)

    def ask(self, each: Member) -> None:
        seen = min(other.published for other in self.members if other is not each)
        each.asked = dict(each.keys.waiting), seen

    def answer(self, each: Member) -> None:
        if each.asked is not None:
            each.keys.release(each.asked[0], self.trusts(each.asked[1]))
            each.asked = None

    def begin(self, each: Member) -> None:
        for key in KEYS:
            if each.may_begin(key):
                assert not any(key in other.running for other in self.members), key
                each.running.add(key)

    def end(self, each: Member) -> None:
        if each.running:
            each.running.remove(self.random.choice(sorted(each.running)))

    def publish(self, each: Member) -> None:
        each.published = each.keys.seen(each.at)

    def step(self) -> None:
        steps = (self.deliver, self.deliver, self.ask, self.answer, self.begin, self.begin, self.end, self.publish)
        each = self.random.choice(self.members)
        if self.random.random() < 0.15:
            self.change()
        elif self.random.random() < 0.03:
            self.list_again(each)
        else:
            self.random.choice(steps)(each)

    def come_to_rest(self) -> None:
        for each in self.members:
            while each.at < len(self.log):
                self.deliver(each)
            each.running.clear()
            self.publish(each)
        for each in self.members:
            self.ask(each)
            self.answer(each)


def run(seed: int, trusts: Callable[[int], float]) -> World:
    world = World(seed, trusts)
    for _ in range(150):
        world.step()
    world.come_to_rest()
    return world


def test_two_members_never_reconcile_one_key_and_each_object_finds_its_owner() -> None:
    for seed in range(examples(1600)):
        world = run(seed, float)
        for key, found in world.objects.items():
            owners = [each for each in world.members if each.may_begin(key)]
            assert [label_hash(found, "tenant") in each.owned for each in owners] == [True]
            assert [each.stored.get(key) for each in world.members if each.stored.get(key)] == [found.version]


def test_model_finds_two_members_if_keys_do_not_wait() -> None:
    found = 0
    for seed in range(50):
        with suppress(AssertionError):
            run(seed, lambda _: float("inf"))
            found += 1
    assert found < 50


def test_old_events_change_nothing_and_a_later_term_waits_again() -> None:
    keys = LabelKeys("tenant", is_busy=lambda _: False)
    assert keys.listed(obj("n/a", 5, "one"), selected=True, whole=False)
    assert keys.follow(WatchEvent(EventType.MODIFIED, obj("n/a", 4, "two")), selected=False) is None
    assert keys.number_of("n/a") == shard_hash("one")
    assert keys.release({"n/a": 5}, 4.0) == []
    assert keys.release({"n/a": 5}, 5.0) == ["n/a"]
    keys.restart()
    assert not keys.may_begin("n/a")
    keys.hold(KeyRanges())
    assert keys.number_of("n/a") == NOWHERE


def test_keys_without_objects_belong_to_nobody_except_keys_without_a_namespace() -> None:
    keys = LabelKeys("tenant", is_busy=lambda _: False)
    assert (keys.number_of("n/a"), keys.number_of("all")) == (NOWHERE, shard_hash("all"))
    keys.namespaced = False
    assert keys.number_of("all") == NOWHERE


def test_a_running_reconcile_concerns_the_former_range_and_delays_the_published_version() -> None:
    running = {"n/a"}
    keys = LabelKeys("tenant", is_busy=running.__contains__)
    keys.listed(obj("n/a", 5, "one"), selected=True, whole=False)
    keys.follow(WatchEvent(EventType.MODIFIED, obj("n/a", 7, "two")), selected=True)
    assert {*keys.numbers_of("n/a")} == {shard_hash("one"), shard_hash("two")}
    keys.follow(WatchEvent(EventType.MODIFIED, obj("n/a", 9, None)), selected=False)
    assert keys.numbers_of("n/a") == (NOWHERE, shard_hash("one"))
    assert keys.seen(20) == 6
    running.clear()
    assert keys.seen(20) == 20
    assert keys.numbers_of("n/a") == (NOWHERE,)


def test_a_list_after_a_gap_lets_keys_wait_because_others_could_own_them_meanwhile() -> None:
    running = {"n/a", "n/b"}
    keys = LabelKeys("tenant", is_busy=running.__contains__)
    for name in sorted(running):
        keys.listed(obj(name, 5, "one"), selected=True, whole=False)
        keys.release({name: 5}, 5.0)
    assert keys.listed(obj("n/a", 9, "one"), selected=True, whole=True)
    keys.replaced(["n/a"])
    assert not keys.may_begin("n/a")
    assert keys.number_of("n/b") == NOWHERE
    assert keys.seen(20) == 5
