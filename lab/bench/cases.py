"""What is measured: each scenario is one load for many peers, and gives the rows of one or two cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from lab.bench.peers.catalogue import FLOOR, OURS, Peer
from lab.bench.replay.session import Load

LIST, WATCH = "list", "watch"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One load.

    Attributes:
        load: What the fastest peers get.
        peers: Names of those that get it; empty means all that can.
        least_objects: A peer that cannot be given so many is left out, instead of being given fewer.
    """

    load: Load
    peers: frozenset[str] = frozenset()
    least_objects: int = 0

    @property
    def name(self) -> str:
        """How its folder of samples is called."""
        return case_name(self.load, LIST) + (f"-{self.load.events}-events" if self.load.events else "")

    def cases(self) -> list[str]:
        """Return the names of its cases."""
        kinds = [LIST, WATCH] if self.load.events else [LIST]
        return [case_name(self.load, each) for each in kinds]

    def takes(self, peer: Peer) -> bool:
        """Return whether a peer takes part."""
        if self.peers and peer.name not in self.peers:
            return False
        if peer.variant and not self.load.events:
            return False
        if self.load.kind not in peer.kinds or (self.load.streamed and not peer.streamed):
            return False
        return peer.max_objects >= min(self.least_objects, self.load.objects)

    def load_of(self, peer: Peer) -> Load:
        """Return what a peer gets: no more than it can take in good time."""
        return replace(
            self.load,
            objects=min(self.load.objects, peer.max_objects),
            events=min(self.load.events, peer.max_events),
            paced=self.load.paced if peer.keeps else 0,
            rate=peer.rate,
        )


def short(number: int) -> str:
    """Return ``10k`` for 10000."""
    return f"{number // 1000}k" if number % 1000 == 0 and number else str(number)


def case_name(load: Load, what: str) -> str:
    """Return a case's name: of Pods, in pages and over TLS, unless it says otherwise."""
    kind = "" if load.kind == "pods" else f"{load.kind}-"
    number = load.objects if what == LIST else load.events
    streamed = "-streamed" if load.streamed and what == LIST else ""
    return f"{kind}{what}-{short(number)}{streamed}{'' if load.tls else '-http'}"


def full(events: int = 50_000, paced: int = 300) -> list[Scenario]:
    """Return everything: what bounds are for comes first, as the whole takes hours."""
    scenarios = list[Scenario]()
    for tls in (True, False):
        bases = [Load(kind=kind, tls=tls, events=0) for kind in ("pods", "widgets")]
        scenarios += [Scenario(load=replace(base, events=events, paced=paced if tls else 0)) for base in bases]
        sizes = [(100_000, False), (10_000, True), (1_000, False), (1_000, True), (50_000, False), (50_000, True)]
        for objects, streamed in (*sizes, (100_000, True)):
            least = 0 if objects == bases[0].objects else 20_000
            scenarios += [
                Scenario(load=replace(base, objects=objects, streamed=streamed), least_objects=least) for base in bases
            ]
    return scenarios


def brief() -> list[Scenario]:
    """Return what continuous integration can run in less than a minute."""
    peers = frozenset({OURS, FLOOR, "client-go-dynamic", "client-go-typed", "kube-rs-dynamic"})
    return [
        Scenario(load=Load(kind=kind, objects=1_000, events=2_000, paced=50), peers=peers)
        for kind in ("pods", "widgets")
    ]


def check() -> list[Scenario]:
    """Return the load by which a later run is held against the committed ratios: ours and the floor."""
    return [Scenario(load=Load(objects=5_000, events=20_000), peers=frozenset({OURS, FLOOR}))]


def order(peers: Sequence[T], round_number: int) -> list[T]:
    """Return the peers in the order of a round: backwards every other time, and each time another one first."""
    if not peers:
        return []
    first = round_number // 2 % len(peers)
    turned = [*peers[first:], *peers[:first]]
    return turned[::-1] if round_number % 2 else turned
