"""From samples to rows: pure arithmetic."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from lab.bench.cases import LIST, WATCH, Scenario, case_name
from lab.bench.peers.catalogue import FLOOR, OURS, Peer
from lab.bench.replay.session import Sample

Metric = Callable[[Sample], float | None]

LIST_METRICS: Final[Mapping[str, Metric]] = {
    "cpu": lambda sample: sample.list_cpu / sample.objects * 1e6,
    "wall": lambda sample: sample.list_wall / sample.objects * 1e6,
    "bytes-per-object": lambda sample: sample.retained / sample.objects,
    "peak-bytes-per-object": lambda sample: sample.peak / sample.objects,
}
WATCH_METRICS: Final[Mapping[str, Metric]] = {
    "cpu": lambda sample: sample.watch_cpu / sample.events * 1e6,
    "wall": lambda sample: sample.watch_wall / sample.events * 1e6,
    "events-per-second": lambda sample: sample.events / sample.watch_wall,
    "bytes-per-object": lambda sample: sample.retained_after / sample.objects,
    "p50": lambda sample: sample.latencies.get("p50"),
    "p99": lambda sample: sample.latencies.get("p99"),
}
MEMORY: Final = {"bytes-per-object", "peak-bytes-per-object"}
_VARIANTS_PEERS: Final = {OURS, FLOOR, "client-go-dynamic", "client-go-typed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Ours against one peer; times in microseconds for each object or event, sizes in bytes.

    Attributes:
        case: Which load.
        peer: Whose.
        metric: What was measured.
        ratio: The median, over the rounds that both have, of ours / theirs.
        ours: Median.
        theirs: Median.
        runs: How many rounds both have.
        wire: What the peer reads; ours is JSON.
        measured: How many objects or events the peer was given.
    """

    case: str
    peer: str
    metric: str
    ratio: float
    ours: float
    theirs: float
    runs: int
    wire: str
    measured: int


Samples = Mapping[str, Mapping[int, Sample]]


def compare(
    ours: Mapping[int, Sample], theirs: Mapping[int, Sample], metric: Metric
) -> tuple[float, float, float, int] | None:
    """Return ratio, ours, theirs, and the number of rounds; None where one has nothing to compare."""
    pairs = [(metric(ours[each]), metric(theirs[each])) for each in sorted(ours.keys() & theirs.keys())]
    found = [(mine, other) for mine, other in pairs if mine is not None and other]
    if not found:
        return None
    ratio = statistics.median(mine / other for mine, other in found)
    return (
        ratio,
        statistics.median(mine for mine, _ in found),
        statistics.median(other for _, other in found),
        len(found),
    )


def rows_of(scenario: Scenario, peers: Sequence[Peer], samples: Samples) -> list[Row]:
    """Return the rows of a scenario: our defaults against everybody, each variant of ours against a few."""
    found = list[Row]()
    there = [each for each in peers if each.name in samples]
    for mine in there:
        if mine.name != OURS and not mine.variant:
            continue
        for peer in there:
            if not peer.variant and peer.name != mine.name and (not mine.variant or peer.name in _VARIANTS_PEERS):
                found += _rows(scenario, peer, mine, samples)
    return found


def _rows(scenario: Scenario, peer: Peer, mine: Peer, samples: Samples) -> list[Row]:
    load = scenario.load_of(peer)
    tables: list[tuple[str, Mapping[str, Metric], int]] = [(LIST, LIST_METRICS, load.objects)]
    if scenario.load.events:
        tables.append((WATCH, WATCH_METRICS, load.events))
    rows = list[Row]()
    for what, metrics, measured in tables:
        suffix = f"-{mine.variant}" if mine.variant else ""
        for name, metric in metrics.items():
            if name in MEMORY and peer.name == FLOOR:
                continue
            found = compare(samples[mine.name], samples[peer.name], metric)
            if found is None:
                continue
            ratio, ours, theirs, runs = found
            rows.append(
                Row(
                    case=case_name(scenario.load, what) + suffix,
                    peer=peer.name,
                    metric=name,
                    ratio=ratio,
                    ours=ours,
                    theirs=theirs,
                    runs=runs,
                    wire=peer.wire,
                    measured=measured,
                )
            )
    return rows


def growth_rows(rows: Sequence[Row]) -> list[Row]:
    """Return ours at each length of the list against ours at 10 k: the peer is called ``self``."""
    found = list[Row]()
    seen = dict[tuple[str, str], Row]()
    for row in rows:
        if row.peer != OURS:
            seen.setdefault((row.case, row.metric), row)
    for (case, metric), row in seen.items():
        base = seen.get((_at_ten_thousand(case), metric))
        if base is None or base is row or metric not in LIST_METRICS:
            continue
        found.append(
            replace(row, peer="self", ratio=row.ours / base.ours, theirs=base.ours, wire="json", measured=10_000)
        )
    return found


def _at_ten_thousand(case: str) -> str:
    words = case.split("-")
    if "list" not in words:
        return ""
    words[words.index("list") + 1] = "10k"
    return "-".join(words)


def as_documents(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as the summary has them."""
    return [
        {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in asdict(row).items()}
        for row in rows
    ]
