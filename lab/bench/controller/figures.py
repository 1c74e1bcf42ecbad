"""From what rounds have measured to rows: ratios by round, and how far chance moves their median. Pure arithmetic."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Final

from lab.bench.controller.operators import DUTIES
from lab.bench.controller.phases import IDLE, PHASES, SINGLE, Measured
from lab.bench.controller.servers import EMBEDDED, REAL
from lab.bench.peers.catalogue import OURS

PREFIX: Final = "controller-"
FORMS: Final[Mapping[str, str]] = {OURS: "", f"{OURS}-uvloop": "-uvloop"}
"""Ours, on asyncio's event loop and on uvloop's: the end of a case's name."""
_RESAMPLES, _SEED, _LEAST = 2_000, 20, 5

# By server, operator and round, what each phase took.
Rounds = Mapping[str, Mapping[str, Mapping[int, Mapping[str, Measured]]]]
Metric = Callable[[Measured], float]

_READ: Final = ("discovery", "list", "watch", "conflict")
METRICS: Final[Mapping[str, Metric]] = {
    "cpu": lambda measured: measured.cpu,
    "wall": lambda measured: measured.wall,
    "rss": lambda measured: measured.rss,
    "peak": lambda measured: measured.peak,
    "server-cpu": lambda measured: measured.server_cpu,
    "requests": lambda measured: float(
        sum(number for what, number in measured.requests.items() if not what.startswith(_READ))
    ),
    "conflicts": lambda measured: float(measured.requests.get("conflict", 0)),
    "p50": lambda measured: measured.latencies["p50"],
    "p99": lambda measured: measured.latencies["p99"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Ours against one peer, as other rows of the summary, with an interval.

    Seconds (``cpu``, ``wall``, ``server-cpu``), MiB (``rss`` after the phase, ``peak`` until then), milliseconds
    (``p50``, ``p99``), or a number (``requests`` but for lists and watches, ``conflicts``).

    Attributes:
        case: The phase, and the server unless it is a real one.
        peer: Whose.
        metric: What was measured.
        ratio: The median, over the rounds that both have, of ours / theirs; None where theirs is nothing.
        low: Lower end of the ratio's interval of 95 %; None with fewer than five rounds.
        high: Its upper end.
        ours: Median.
        theirs: Median.
        runs: How many rounds both have.
        wire: What the peer reads.
        measured: How many objects there were.
    """

    case: str
    peer: str
    metric: str
    ratio: float | None
    low: float | None
    high: float | None
    ours: float
    theirs: float
    runs: int
    wire: str
    measured: int


def interval(ratios: Sequence[float]) -> tuple[float, float] | None:
    """Return the bootstrap's percentile interval of 95 % of a median, always the same for the same ratios.

    Rounds are drawn again with replacement, as often as there are; None where there are too few of them to say.
    """
    if len(ratios) < _LEAST:
        return None
    chance = random.Random(_SEED)
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    return medians[int(_RESAMPLES * 0.025)], medians[int(_RESAMPLES * 0.975) - 1]


def case_name(server: str, phase: str) -> str:
    """Return how a phase is called in the summary."""
    return PREFIX + phase + ("" if server == REAL else f"-{server}")


def rows_of(rounds: Rounds, objects: int) -> list[Row]:
    """Return the rows of all servers, phases and peers that were measured beside ours."""
    found = list[Row]()
    for server, operators in rounds.items():
        for phase, (own, form) in product(PHASES, FORMS.items()):
            ours = operators.get(own, {})
            for peer, theirs in operators.items():
                if peer in FORMS:
                    continue
                both = sorted(
                    each for each in ours.keys() & theirs.keys() if phase in ours[each] and phase in theirs[each]
                )
                for metric, read in METRICS.items():
                    if both and _has(server, phase, metric):
                        pairs = [(read(ours[each][phase]), read(theirs[each][phase])) for each in both]
                        found.append(_row(case_name(server, phase) + form, peer, metric, pairs, objects))
    return found


def _has(server: str, phase: str, metric: str) -> bool:
    """Return whether a metric means something: single changes have latencies, the embedded server does not count."""
    if metric in {"p50", "p99"}:
        return phase == SINGLE
    return server != EMBEDDED or metric not in {"requests", "conflicts"}


def _row(case: str, peer: str, metric: str, pairs: Sequence[tuple[float, float]], objects: int) -> Row:
    comparable = all(other > 0 for _, other in pairs)
    ratios = [mine / other for mine, other in pairs] if comparable else []
    ends = interval(ratios)
    return Row(
        case=case,
        peer=peer,
        metric=metric,
        ratio=statistics.median(ratios) if ratios else None,
        low=None if ends is None else ends[0],
        high=None if ends is None else ends[1],
        ours=statistics.median(mine for mine, _ in pairs),
        theirs=statistics.median(other for _, other in pairs),
        runs=len(pairs),
        wire="json",
        measured=objects,
    )


def as_documents(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as the summary has them."""
    return [
        {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in asdict(row).items()}
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a ratio is to be at most."""

    cases: tuple[str, ...]
    peers: tuple[str, ...]
    metric: str
    limit: float


_WORK: Final = ("controller-start", "controller-change")
_KOPF: Final = ("kopf", "kopf-indexed")
_GO: Final = ("controller-runtime",)
BOUNDS: Final = (
    Bound(("controller-start-replayed",), _GO, "cpu", 0.6),
    Bound(("controller-change-replayed",), _GO, "cpu", 0.75),
    Bound(("controller-single-replayed",), _GO, "cpu", 0.65),
    Bound(("controller-single-replayed",), _GO, "p50", 0.8),
    Bound(("controller-restart-replayed",), _GO, "cpu", 0.8),
    Bound(("controller-start",), _GO, "cpu", 0.5),
    Bound(("controller-change",), _GO, "cpu", 0.55),
    Bound(("controller-change-replayed",), (DUTIES,), "cpu", 1.9),
    Bound(("controller-change",), (DUTIES,), "cpu", 1.5),
    Bound(("controller-change",), _GO, "rss", 0.95),
    Bound(_WORK, ("kube-rs",), "cpu", 1.7),
    Bound(_WORK, _KOPF, "cpu", 0.22),
    Bound((f"controller-{IDLE}",), _GO, "rss", 1.10),
)


def word(row: Mapping[str, Any] | None, limit: float) -> str:
    """Say whether a bound is reached: the whole interval is below it."""
    if row is None:
        return "not measured"
    if row["high"] is None:
        return "too few rounds to say"
    return "reached" if row["high"] < limit else "**not reached**"
