"""Average of reconcile times."""

from __future__ import annotations

import pytest

from deltaloop.api.shard_selector import HASH_SPACE
from deltaloop.sharding.core.key_ranges import KeyRanges
from deltaloop.sharding.core.reconcile_time import HALF_LIFE, ReconcileTime

ALL = KeyRanges([(0, HASH_SPACE)])


def test_rate_approaches_the_seconds_of_reconciles_in_a_second_and_is_halved_after_a_half_life() -> None:
    time = ReconcileTime(0.0)
    for step in range(1, 601):
        time.add(5, 2.5)
        time.rates(ALL, 10.0 * step)
    rate = time.rates(ALL, 6000.0)[5]
    assert rate == pytest.approx(0.25, rel=0.02)
    assert time.rates(ALL, 6000.0 + HALF_LIFE)[5] == pytest.approx(rate / 2)
    assert not time.rates(ALL, 6000.0 + 100 * HALF_LIFE)


def test_next_owner_continues_with_the_rate_of_the_earlier_owner_and_forgets_other_hashes() -> None:
    time = ReconcileTime(0.0)
    time.expect([(5, 0.25), (9, 0.5)])
    assert time.rates(ALL, 0.0) == pytest.approx({5: 0.25, 9: 0.5})
    assert time.rates(KeyRanges([(0, 9)]), 0.0) == pytest.approx({5: 0.25})
    assert time.rates(ALL, 0.0) == pytest.approx({5: 0.25})


def test_sums_of_many_hashes_are_joined_and_stay_exact_over_a_long_time() -> None:
    time = ReconcileTime(0.0)
    for number in range(70_001):
        time.add(number, 1.0)
    rates = time.rates(ALL, 0.0)
    assert len(rates) <= 35_001
    assert sum(rates.values()) * HALF_LIFE == pytest.approx(70_001 * 0.6931471805599453)
    time.expect([(1, 0.1)])
    now = 0.0
    for _ in range(100):
        now += 90 * HALF_LIFE
        time.rates(ALL, now)
        time.expect([(1, 0.1)])
    assert time.rates(ALL, now) == pytest.approx({1: 0.1})
    assert not time.rates(ALL, now + 1e9)
