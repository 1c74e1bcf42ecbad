"""Members that are alive, due for deletion, or dead."""

from __future__ import annotations

import math

from deltaloop.sharding.core.membership import MemberLease, Membership, OtherKeys

A, B = MemberLease("a", "ua", "1", 15.0), MemberLease("b", "ub", "1", 20.0)


def test_a_lease_without_a_renewal_is_deleted_after_its_duration() -> None:
    membership = Membership(15.0)
    membership.saw([A, B], ["ua", "ub"], 100.0)
    membership.saw([A, B], ["ua", "ub"], 114.0)
    assert membership.to_evict(114.9) == ()
    assert membership.next_at(114.9) == 115.0
    assert membership.to_evict(115.0) == (A,)
    assert membership.next_at(115.0) == 120.0  # the deletion can be the task of another member
    assert membership.dead(115.0) == frozenset()
    membership.evicted(A)
    assert membership.dead(115.0) == {"ua"}
    assert membership.alive() == (B,)
    membership.saw([A, B], ["ua", "ub"], 115.5)  # from an old cache
    assert membership.dead(115.5) == {"ua"}
    assert membership.alive() == (B,)
    membership.saw([B], ["ub"], 116.0)
    assert membership.dead(116.0) == frozenset()


def test_a_renewal_starts_the_time_again() -> None:
    membership = Membership(15.0)
    membership.saw([A], ["ua"], 100.0)
    renewed = MemberLease("a", "ua", "2", 15.0)
    membership.saw([renewed], ["ua"], 110.0)
    assert membership.to_evict(120.0) == ()
    assert membership.to_evict(125.0) == (renewed,)


def test_an_owner_without_a_lease_counts_as_alive_for_the_longest_duration() -> None:
    membership = Membership(15.0)
    membership.saw([], ["ua"], 100.0)
    assert membership.next_at(100.0) == 115.0
    assert membership.dead(114.9) == frozenset()
    assert membership.dead(115.0) == {"ua"}
    membership = Membership(15.0)
    membership.saw([A, B], ["ua"], 100.0)
    membership.saw([B], ["ua"], 101.0)
    membership.saw([B], ["ua"], 118.0)
    assert membership.dead(120.9) == frozenset()
    assert membership.dead(121.0) == {"ua"}


def test_nothing_is_due_without_members() -> None:
    membership = Membership(15.0)
    membership.saw([], ["", ""], 0.0)
    assert membership.next_at(0.0) == math.inf


def test_new_members_wait_for_each_other_for_a_limited_time() -> None:
    membership = Membership(15.0)
    membership.saw([A], [], 100.0)
    assert membership.first_plan_at(100.0) == 101.0
    membership.saw([MemberLease("a", "ua", "2", 15.0)], [], 100.5)  # a renewal
    assert membership.first_plan_at(100.0) == 101.0
    membership.saw([A, B], [], 100.8)
    assert membership.first_plan_at(100.0) == 101.8
    membership.saw([B], [], 104.0)
    membership.saw([A, B], [], 104.5)
    assert membership.first_plan_at(100.0) == 105.0


def test_members_with_another_key_must_have_expired_and_a_renewal_shows_that_one_is_alive() -> None:
    others = OtherKeys(15.0)
    assert others.saw([], 100.0) is None
    assert others.have_expired(100.0)
    assert others.saw([A, B], 100.0) is None
    assert others.saw([A, B], 116.0) is None
    assert not others.have_expired(116.0)  # B lasts for 20 s
    assert others.have_expired(120.0)
    renewed = MemberLease("b", "ub", "2", 20.0)
    assert others.saw([A, renewed], 119.0) == renewed
    assert others.saw([A], 119.0) is None
    assert others.have_expired(119.0)
