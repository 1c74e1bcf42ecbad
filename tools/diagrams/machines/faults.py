"""What each fault of a relay does to the bytes of a connection; how owners and dependents go on the embedded server."""

from __future__ import annotations

from typing import Any

from tools.diagrams.model import Table

from deltaloop.apiserver.builtin_tables import built_in
from deltaloop.apiserver.core.controllers.first_objects import make_namespaces
from deltaloop.apiserver.core.controllers.garbage import GarbageCollector
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.testing.injected_faults.core.relay import (
    BUFFER_LIMIT,
    Close,
    Corrupt,
    Cut,
    Delay,
    Direction,
    HalfOpen,
    RelayFault,
    RelayMachine,
    Reset,
    Send,
    Stall,
    Throttle,
)

TO_CLIENT = Direction.TO_CLIENT
DATA = b"abcdef"

# -- the relay


def _faults() -> list[tuple[str, tuple[RelayFault, ...]]]:
    return [
        ("no fault", ()),
        ("`Cut(after_bytes=2)`", (Cut(after_bytes=2),)),
        ("`Reset(after_bytes=2)`", (Reset(after_bytes=2),)),
        ("`Stall(after_bytes=2, duration=5)`", (Stall(after_bytes=2, duration=5.0),)),
        ("`Stall(after_bytes=2)`", (Stall(after_bytes=2),)),
        ("`HalfOpen(after_bytes=2)`", (HalfOpen(after_bytes=2),)),
        ("`Delay(seconds=3)`", (Delay(seconds=3.0),)),
        ("`Throttle(bytes_per_second=2)`", (Throttle(bytes_per_second=2.0),)),
        ("`Corrupt(after_bytes=2)`", (Corrupt(after_bytes=2),)),
    ]


def _come(faults: tuple[RelayFault, ...], seconds: float) -> tuple[str, str]:
    """Send the bytes and let time pass; return those that came until then, and how the connection ended."""
    relay = RelayMachine(faults, now=0.0)
    relay.received(TO_CLIENT, DATA, 0.0)
    now, came, end = 0.0, b"", "stays open"
    while True:
        for act in relay.act(now):
            if isinstance(act, Send):
                came += act.data
            elif isinstance(act, Close):
                end = "reset" if act.by_reset else "closed"
        wake_at = relay.wake_at()
        if wake_at is None or wake_at > seconds:
            return f"`{came.decode()}`" if came else "–", end
        now = wake_at


def relay() -> Table:
    """Send six bytes to the client under each fault."""
    rows: list[tuple[str, ...]] = []
    for words, given in _faults():
        at_once, _ = _come(given, 0.0)
        later, end = _come(given, 60.0)
        full = RelayMachine(given, now=0.0)
        full.received(TO_CLIENT, bytes(2 * BUFFER_LIMIT), 0.0)
        full.act(0.0)
        rows.append((words, at_once, later, end, "yes" if full.reads(TO_CLIENT) else "no"))
    heads = ("fault", "received immediately", "received after a minute", "connection", "reads more than 128 KiB")
    return Table("relay", "faults", "testing/injected_faults/core/relay.py", heads, rows)


# -- garbage collection


class _Owned:
    """An owner and its dependent, on a server with a garbage collector."""

    def __init__(self, *, second_owner: bool) -> None:
        self.server = ServerState(RevisionStore(), Registry(built_in()))
        make_namespaces(self.server, lambda: Moment(now=0, uid="namespace"))
        served = self.server.registry.find("", "v1", "configmaps")
        assert served is not None
        self.served: ServedResource = served
        self.collector = GarbageCollector(self.server, lambda: Moment(now=0, uid="collector"))
        self._create("owner", [])
        if second_owner:
            self._create("second", [])
        owners = ["owner", "second"] if second_owner else ["owner"]
        references = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "blockOwnerDeletion": True}
            for name in owners
        ]
        self._create("dependent", references)

    def _create(self, name: str, owners: list[dict[str, Any]]) -> None:
        fields: dict[str, Any] = {"metadata": {"name": name, "ownerReferences": owners}}
        create(self.server.own_write(self.served, "default", "", Moment(now=0, uid=name)), fields)

    def state(self, name: str) -> str:
        found = self.server.objects.get(self.served.storage, f"default/{name}")
        if found is None:
            return "gone"
        words = "terminating" if found.deletion_timestamp is not None else "present"
        owners = ", ".join(owner.name for owner in found.owner_references)
        return f"{words}, owned by {owners}" if owners else words

    def delete(self, policy: str) -> tuple[str, str, str, str]:
        context = self.server.own_write(self.served, "default", "owner", Moment(now=0))
        delete(context, DeleteOptions(propagation_policy=policy))
        before = self.state("owner"), self.state("dependent")
        self.collector.run()
        return *before, self.state("owner"), self.state("dependent")


def garbage() -> Table:
    """Delete an owner by each policy, and let the collector run."""
    rows: list[tuple[str, ...]] = []
    for words, second in (("one owner", False), ("two owners", True)):
        policies = ("Background", "Foreground", "Orphan")
        rows += [(words, policy, *_Owned(second_owner=second).delete(policy)) for policy in policies]
    heads = (
        "dependent with",
        "policy",
        "owner after the delete",
        "dependent after the delete",
        "owner at the end",
        "dependent at the end",
    )
    return Table("garbage", "embedded-server", "apiserver/core/controllers/garbage.py", heads, rows)


def tables() -> list[Table]:
    """Make both."""
    return [relay(), garbage()]
