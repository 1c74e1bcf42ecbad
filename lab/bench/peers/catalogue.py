"""Which peers there are, how each is started, and what it reads; a peer that was not built is left out by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from deltaloop.cache.informer_options import InformerOptions

OURS: Final = "deltaloop"
FLOOR: Final = "floor"
BUILD: Final = Path("build/bench")
GO_PEER: Final = BUILD / "go/peer"
RUST_PEER: Final = BUILD / "rust/release/kube-rs-peer"
FOREIGN_PYTHON: Final = BUILD / "python/bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One program that is measured.

    Attributes:
        name: As rows name it.
        wire: What it reads from the socket.
        built: What must be there to run it.
        command: How it is started, from the checkout.
        environment: Variables of its own.
        kinds: What it can be given.
        streamed: Whether it can ask for a streamed list.
        max_objects: A longer list is not given to it, but one of this length, and its cost is that for each object;
            what takes more than ten times as long as ours gets no more than 10 000.
        max_events: Likewise.
        rate: How many events in a second it can follow while latencies are measured.
        variant: How our own program differs from its defaults; empty for those and for all others.
        keeps: Whether it has a cache; the floor has none, and is not asked for latencies either.
    """

    name: str
    wire: str
    built: Path
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    kinds: tuple[str, ...] = ("pods", "widgets")
    streamed: bool = False
    max_objects: int = 100_000
    max_events: int = 50_000
    rate: float = 200.0
    variant: str = ""
    keeps: bool = True


def _ours(variant: str) -> Peer:
    name = f"{OURS}-{variant}" if variant else OURS
    return Peer(
        name=name,
        wire="json",
        built=Path("lab/bench/peers/deltaloop_peer.py"),
        command=(sys.executable, "-m", "lab.bench.peers.deltaloop_peer"),
        environment={"BENCH_OPTIONS": variant},
        variant=variant,
        streamed=True,
    )


def _foreign(
    name: str, module: str, *, max_objects: int = 10_000, max_events: int = 5_000, rate: float = 200.0
) -> Peer:
    return Peer(
        name=name,
        wire="json",
        built=FOREIGN_PYTHON,
        command=(str(FOREIGN_PYTHON), "-m", f"lab.bench.peers.{module}"),
        max_objects=max_objects,
        max_events=max_events,
        rate=rate,
    )


def _go(form: str, wire: str, kinds: tuple[str, ...], max_objects: int, max_events: int) -> Peer:
    return Peer(
        name=f"client-go-{form}",
        wire=wire,
        built=GO_PEER,
        command=(str(GO_PEER), form),
        kinds=kinds,
        streamed=True,
        max_objects=max_objects,
        max_events=max_events,
    )


def _rust(form: str, kinds: tuple[str, ...]) -> Peer:
    return Peer(
        name=f"kube-rs-{form}",
        wire="json",
        built=RUST_PEER,
        command=(str(RUST_PEER), form),
        kinds=kinds,
        streamed=True,
    )


def _variants() -> list[Peer]:
    """Return ours with other options than the defaults; one that the options do not have is left out."""
    found = [_ours("stripped"), _ours("delta-fifo")]
    if hasattr(InformerOptions, "compression"):
        found.append(_ours("compressed"))
    return found


PEERS: Final = (
    _ours(""),
    Peer(
        name=FLOOR,
        wire="json",
        built=Path("lab/bench/floor.py"),
        command=(sys.executable, "-m", "lab.bench.floor"),
        keeps=False,
    ),
    *_variants(),
    _go("dynamic", "json", ("pods", "widgets"), 10_000, 10_000),
    _go("typed", "protobuf", ("pods",), 100_000, 50_000),
    _rust("dynamic", ("pods", "widgets")),
    _rust("typed", ("pods",)),
    _foreign("official", "official"),
    _foreign("kubernetes-asyncio", "kubernetes_asyncio_peer"),
    _foreign("kopf", "kopf_peer", max_objects=1_000, max_events=1_000, rate=50.0),
    _foreign("kr8s", "kr8s_peer", max_objects=1_000, max_events=1_000, rate=50.0),
    _foreign("lightkube", "lightkube_peer", max_events=10_000),
)


def available(root: Path, wanted: set[str]) -> tuple[list[Peer], list[str]]:
    """Return the peers that can run, and the names of those that were not built.

    Args:
        root: The checkout.
        wanted: Names; empty means all. Ours is always among them.
    """
    chosen = [each for each in PEERS if not wanted or each.name in wanted or each.name == OURS]
    there = [each for each in chosen if (root / each.built).exists()]
    return there, [each.name for each in chosen if each not in there]
