"""What is to be reached, as ours / theirs, over TLS; and what of it a run has reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

CPU, BYTES = "cpu", "bytes-per-object"


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound; a limit of None is printed without being judged."""

    cases: tuple[str, ...]
    peer: str
    cpu: float | None
    size: float | None
    aim: bool = False


_PODS: Final = ("list-10k", "watch-50k")
_WIDGETS: Final = ("widgets-list-10k", "widgets-watch-50k")
BOUNDS: Final = (
    Bound(_WIDGETS, "client-go-dynamic", 0.20, 0.25),
    Bound(tuple(f"{each}-compressed" for each in _WIDGETS), "client-go-dynamic", 0.35, 0.08),
    Bound(_PODS, "client-go-typed", 1.0, 1.0, aim=True),
    Bound((*_PODS, *_WIDGETS), "kube-rs-dynamic", 1.0, 0.5),
    Bound((*_PODS, *_WIDGETS), "official", 0.05, 0.12),
    Bound((*_PODS, *_WIDGETS), "kubernetes-asyncio", 0.04, 0.25),
    Bound((*_PODS, *_WIDGETS), "kopf", 0.40, 0.30),
    Bound((*_PODS, *_WIDGETS), "kr8s", 0.40, 0.30),
    Bound((*_PODS, *_WIDGETS), "lightkube", 0.40, 0.30),
    Bound(("list-100k", "widgets-list-100k"), "self", 1.15, 1.05),
    Bound((*_PODS, *_WIDGETS), "floor", 2.0, None),
)
LONGEST_STALL: Final = 0.050
IMPORT_CPU: Final = 0.080
"""Seconds that what is ours of a running controller takes to be imported, after its dependencies."""
IMPORT_BYTES: Final = 4 << 20

Rows = Mapping[tuple[str, str, str], Mapping[str, Any]]


def by_key(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return rows by case, peer and metric."""
    return {(row["case"], row["peer"], row["metric"]): row for row in rows}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One bound of one case and metric, and what was measured; None where nothing was."""

    case: str
    peer: str
    metric: str
    limit: float
    aim: bool
    ratio: float | None

    @property
    def word(self) -> str:
        """What the page says."""
        if self.ratio is None:
            return "not measured"
        if self.ratio <= self.limit:
            return "reached"
        return "not reached (an aim)" if self.aim else "**not reached**"


def verdicts(rows: Rows) -> Iterator[Verdict]:
    """Hold the rows against the bounds."""
    for bound in BOUNDS:
        for case in bound.cases:
            for metric, limit in ((CPU, bound.cpu), (BYTES, bound.size)):
                if limit is not None:
                    row = rows.get((case, bound.peer, metric))
                    yield Verdict(case, bound.peer, metric, limit, bound.aim, row["ratio"] if row else None)
