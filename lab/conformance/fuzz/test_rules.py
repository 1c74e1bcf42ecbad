"""The fuzzer of rules: what it makes is rules mostly, the same for the same seed, and what differs is found."""

from __future__ import annotations

import random

from tests.conformance.target import EmbeddedTarget

from lab.conformance.fuzz.of_rules import Comparison, run
from lab.conformance.fuzz.rules import Chance, count


def test_seed_determines_rules() -> None:
    made = [Chance(random.Random(3)) for _ in range(2)]
    one, two = [[chance.with_rules(chance.schema()) for _ in range(20)] for chance in made]
    assert one == two
    assert sum(map(count, one)) > 20


async def test_equal_servers_have_no_differences() -> None:
    comparison = Comparison()
    async with EmbeddedTarget().open() as one, EmbeddedTarget().open() as two:
        await run((one, two), Chance(random.Random(5)), comparison, evaluations=200, broken=5)
    counts = comparison.counts
    assert counts["evaluations"] >= 200
    assert counts["broken schemas"] >= 5
    assert counts["objects"] == counts["changes"] > 0
    # Nearly all rules are right before one is broken.
    assert counts["schemas taken"] > 0.8 * counts["schemas"]
    assert not any("another" in what for what in counts)
    assert not comparison.fails()


def test_differences_are_found() -> None:
    comparison = Comparison()
    for _ in range(300):
        comparison.add("object", 1, [201], [201], "")
    comparison.add("object", 1, [422, "spec.a: one"], [422, "spec.a: two"], "")
    assert not comparison.fails()
    comparison.add("object", 1, [422, "spec.a: one"], [422, "spec.b: one"], "")
    assert comparison.fails()
    other = Comparison()
    other.add("change", 1, [200], [422, "spec.a: one"], "")
    assert other.fails()
    assert other.counts["changes with another verdict"] == 1
