"""One hand-over, as its two members see it."""

from __future__ import annotations

from deltaloop.sharding.core.member import Member
from deltaloop.sharding.core.shard_map import ShardMap, ShardRange


def one(owner: str, successor: str = "", *, ready: bool = False, epoch: int = 0) -> ShardMap:
    return ShardMap((ShardRange(0, 2**64, epoch, owner, successor, ready),))


def member(uid: str) -> Member:
    new = Member()
    new.uid = uid
    return new


def test_handover_between_members() -> None:
    old, new = member("a"), member("b")
    for each in (old, new):
        each.saw(one("a", "b"), "5")
    (moving,) = new.held
    assert old.working == (moving,)
    assert new.working == ()
    assert new.next_map() is None
    new.filled(moving)
    ready = new.next_map()
    assert ready is not None
    assert ready == one("a", "b", ready=True)
    assert old.next_map() is None
    for each in (old, new):
        each.saw(ready, "6")
    assert not old.working
    assert not new.working
    assert old.next_map() is None
    (stopping,) = old.stopping
    old.idle(stopping)
    given = old.next_map()
    assert given is not None
    assert given == one("b", epoch=1)
    for each in (old, new):
        each.saw(given, "7")
    assert (len(old.held), len(new.working)) == (0, 1)


def test_ranges_of_one_owner_become_ready_at_a_time() -> None:
    new, half = member("c"), 2**63
    moving = (ShardRange(0, half, 0, "a", "c"), ShardRange(half, 2**64, 0, "b", "c"))
    new.saw(ShardMap(moving), "5")
    for each in new.held:
        new.filled(each)
    first = new.next_map(in_turn=True)
    assert first is not None
    assert [each.ready for each in first.ranges] == [True, False]
    new.saw(first, "6")
    assert new.next_map(in_turn=True) is None
    late = new.next_map()
    assert late is not None, "an owner that takes long must not delay other owners"
    assert [each.ready for each in late.ranges] == [True, True]
    new.saw(ShardMap((first.ranges[0].given_to("c"), moving[1])), "7")
    second = new.next_map(in_turn=True)
    assert second is not None
    assert [each.ready for each in second.ranges] == [False, True]


def test_canceled_handover_resumes_work() -> None:
    owner = member("a")
    owner.saw(one("a", "b", ready=True), "5")
    owner.idle(owner.stopping[0])
    assert owner.next_map() is not None
    owner.saw(one("a"), "6")
    assert len(owner.working) == 1
    owner.saw(one("a", "b", ready=True), "7")
    assert owner.next_map() is None


def test_an_older_map_is_ignored() -> None:
    owner = member("a")
    assert owner.saw(one("a"), "10")
    assert not owner.saw(one("b"), "9")
    assert owner.map == one("a")


def test_program_without_lease_owns_no_ranges() -> None:
    nobody = member("")
    nobody.saw(one("", "", ready=True), "1")
    assert (nobody.held, nobody.working, nobody.stopping, nobody.next_map()) == ((), (), (), None)
