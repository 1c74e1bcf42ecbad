"""From samples to rows, from rows to verdicts, and the order of peers."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.bench import cases
from lab.bench.bounds import by_key, verdicts
from lab.bench.cases import Scenario, case_name
from lab.bench.peers.catalogue import PEERS, Peer, available
from lab.bench.replay.recording import probed_version
from lab.bench.replay.session import Load, Sample, check
from lab.bench.rows import LIST_METRICS, Row, as_documents, compare, growth_rows, rows_of
from lab.bench.run import check_ratios, confirmed

SAMPLE = Sample(
    objects=1_000,
    list_cpu=0.05,
    list_wall=0.1,
    retained=8_000_000,
    peak=9_000_000,
    events=2_000,
    watch_cpu=0.1,
    watch_wall=0.2,
    latencies={"p50": 500.0, "p99": 900.0},
    start_cpu=0.3,
    start_rss=1,
    retained_after=10_000_000,
    extra={},
)
BY_NAME = {each.name: each for each in PEERS}


def peers(*names: str) -> list[Peer]:
    return [BY_NAME[each] for each in names]


def row(case: str, peer: str, metric: str, ratio: float, ours: float = 1.0) -> Row:
    return Row(case=case, peer=peer, metric=metric, ratio=ratio, ours=ours, theirs=1.0, runs=1, wire="json", measured=1)


def test_ratio_is_median_of_ratios_of_rounds() -> None:
    ours = {each: replace(SAMPLE, list_cpu=cpu) for each, cpu in enumerate((0.01, 0.02, 0.09))}
    theirs = {each: replace(SAMPLE, list_cpu=cpu) for each, cpu in enumerate((0.10, 0.10, 0.10, 0.10))}
    found = compare(ours, theirs, LIST_METRICS["cpu"])
    assert found is not None
    assert found[0] == pytest.approx(0.2)
    assert found[3] == 3
    uneven = {each: replace(SAMPLE, list_cpu=cpu) for each, cpu in enumerate((0.01, 0.10, 0.30))}
    found = compare(ours, uneven, LIST_METRICS["cpu"])
    assert found is not None
    assert found[0] == pytest.approx(0.3)


def test_rounds_of_one_side_only_are_not_compared() -> None:
    assert compare({0: SAMPLE}, {1: SAMPLE}, LIST_METRICS["cpu"]) is None


def test_peer_with_smaller_load_is_compared_per_object() -> None:
    scenario = Scenario(load=Load(objects=10_000, events=50_000))
    fewer = replace(SAMPLE, objects=1_000, list_cpu=1.0)
    more = replace(SAMPLE, objects=10_000, list_cpu=1.0)
    rows = rows_of(scenario, peers("deltaloop", "kr8s"), {"deltaloop": {0: more}, "kr8s": {0: fewer}})
    cpu = next(each for each in rows if (each.case, each.metric) == ("list-10k", "cpu"))
    assert cpu.ratio == pytest.approx(0.1)
    assert cpu.measured == 1_000


def test_own_variants_have_own_cases_and_are_not_peers() -> None:
    scenario = Scenario(load=Load(objects=10_000, events=0))
    names = ("deltaloop", "deltaloop-stripped", "floor")
    rows = rows_of(scenario, peers(*names), {name: {0: SAMPLE} for name in names})
    assert {(each.case, each.peer) for each in rows} == {
        ("list-10k", "floor"),
        ("list-10k-stripped", "deltaloop"),
        ("list-10k-stripped", "floor"),
    }


def test_floor_has_no_memory_row() -> None:
    scenario = Scenario(load=Load(objects=10_000, events=0))
    rows = rows_of(scenario, peers("deltaloop", "floor"), {"deltaloop": {0: SAMPLE}, "floor": {0: SAMPLE}})
    assert {each.metric for each in rows} == {"cpu", "wall"}


def test_growth_compares_each_length_with_ten_thousand() -> None:
    rows = [row("list-10k-http", "floor", "cpu", 1.0, ours=40.0), row("list-100k-http", "floor", "cpu", 1.0, ours=44.0)]
    (found,) = growth_rows(rows)
    assert (found.case, found.peer) == ("list-100k-http", "self")
    assert found.ratio == pytest.approx(1.1)


def test_case_names() -> None:
    assert case_name(Load(), "list") == "list-10k"
    assert case_name(Load(), "watch") == "watch-50k"
    assert case_name(Load(kind="widgets", streamed=True, tls=False, objects=500), "list") == (
        "widgets-list-500-streamed-http"
    )
    names = [each.name for each in cases.full()]
    assert len(names) == len(set(names))


def test_order_of_peers_rotates_and_reverses() -> None:
    four = peers("deltaloop", "floor", "kopf", "kr8s")
    orders = [cases.order(four, each) for each in range(8)]
    assert {each[0].name for each in orders} == {each.name for each in four}
    assert orders[1] == orders[0][::-1]
    assert all(len(each) == 4 for each in orders)
    assert cases.order([], 3) == []


def test_long_list_is_limited_to_capable_peers() -> None:
    scenario = Scenario(load=Load(objects=50_000, events=0), least_objects=20_000)
    assert scenario.takes(BY_NAME["kube-rs-dynamic"])
    assert not scenario.takes(BY_NAME["client-go-dynamic"])
    assert not scenario.takes(BY_NAME["official"])
    assert Scenario(load=Load(objects=1_000, events=0), least_objects=20_000).takes(BY_NAME["official"])
    assert not Scenario(load=Load(streamed=True)).takes(BY_NAME["official"])
    assert not Scenario(load=Load(kind="widgets")).takes(BY_NAME["client-go-typed"])


def test_unbuilt_peers_are_skipped(tmp_path: Path) -> None:
    there, skipped = available(tmp_path, {"kopf"})
    assert there == []
    assert "kopf" in skipped


def test_verdicts_include_unmeasured_and_unreached_bounds() -> None:
    rows = [row("watch-50k", "floor", "cpu", 2.5), row("list-10k", "floor", "cpu", 2.0)]
    words = {
        (each.case, each.metric): each.word for each in verdicts(by_key(as_documents(rows))) if each.peer == "floor"
    }
    assert words["list-10k", "cpu"] == "reached"
    assert words["watch-50k", "cpu"] == "**not reached**"
    assert words["widgets-list-10k", "cpu"] == "not measured"


def test_regression_is_ratio_above_tolerance() -> None:
    committed = as_documents([row("list-5k", "floor", "cpu", 1.6), row("watch-20k", "floor", "cpu", 2.0)])
    now = [row("list-5k", "floor", "cpu", 2.39), row("watch-20k", "floor", "cpu", 3.1)]
    assert check_ratios(committed, now, 1.5) == ["watch-20k: 3.10 times the floor, not more than 3.00"]


@pytest.mark.parametrize(
    ("ratios", "worse", "judged"),
    [
        ({3: 2.9, 9: 3.1, 21: 3.2}, False, [3]),
        ({3: 3.1, 9: 2.9, 21: 3.2}, False, [3, 9]),
        ({3: 3.1, 9: 3.2, 21: 3.1}, True, [3, 9, 21]),
    ],
)
def test_suspected_regression_is_measured_again(ratios: dict[int, float], worse: bool, judged: list[int]) -> None:
    committed = as_documents([row("watch-20k", "floor", "cpu", 2.0)])
    seen = list[int]()

    def measured(count: int) -> list[Row]:
        seen.append(count)
        return [row("watch-20k", "floor", "cpu", ratios[count])]

    assert bool(confirmed(committed, measured, (3, 9, 21), 1.5)) is worse
    assert seen == judged


def test_peer_with_wrong_cache_content_is_rejected() -> None:
    load = Load(objects=3_000, events=10)
    right = {"probe_version": probed_version(3_000, 10), "indexed": 2}
    check(right, load, "peer")
    check({}, load, "floor")
    with pytest.raises(RuntimeError, match="holds version"):
        check({**right, "probe_version": "1"}, load, "peer")
    with pytest.raises(RuntimeError, match="by index"):
        check({**right, "indexed": 1}, load, "peer")
