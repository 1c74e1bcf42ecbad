"""Injection of server-side faults, by method calls and by HTTP.

    GET    /deltaloop/faults              list the active faults
    POST   /deltaloop/faults              add a fault; the response contains its number
    DELETE /deltaloop/faults[/NUMBER]     remove one fault or all; stalls end
    POST   /deltaloop/watches             {"do": "cut" | "end" | "expire" | "stall", ...}: affect open watches in scope
    POST   /deltaloop/compact             {"revision": N}: drop the changes up to N, all by default
    POST   /deltaloop/reset-revisions     {"revision": N}: renumber from N, 1 by default
    POST   /deltaloop/restart             {"seconds": N}: close all connections, then listen again after N seconds

All requests require a member of ``system:masters``, such as the user of the server's own token.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final, final

from aiohttp import web

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.body import read_body, read_fields
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.rbac import forbidden
from deltaloop.apiserver.core.fault_rules import ON_WATCHES, Fault, FaultBook, Strike
from deltaloop.apiserver.core.storage.store import CompactedError, RevisionStore
from deltaloop.apiserver.core.user import Attributes, User
from deltaloop.apiserver.core.wire.request_info import MASTERS, RequestInfo
from deltaloop.apiserver.exchange import Exchange

_log: Final = logging.getLogger("deltaloop.apiserver")
ROOT: Final = "deltaloop"
_ANSWERED: Final = 0.05
_NUMBER: Final = re.compile("[0-9]{1,9}")


@final
class Faults:
    """Fault injection of one server, available as ``server.faults``."""

    def __init__(
        self, store: RevisionStore, *, seed: int | None = None, restart: Callable[[float], Awaitable[None]]
    ) -> None:
        """Start without faults.

        Args:
            store: Store to compact and renumber.
            seed: Seed for random decisions. None for a random seed.
            restart: Function that closes the server's sockets for a number of seconds.
        """
        self._store = store
        self._book = FaultBook()
        self._random = random.Random(seed)
        self._restart = restart
        self._watches: dict[Exchange, None] = {}
        self._restarting: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<Faults {len(self._book.active())} on, {self.open_watches} watches open>"

    @property
    def open_watches(self) -> int:
        """Number of open watches."""
        return len(self._watches)

    def add(self, fault: Fault) -> int:
        """Add a fault, and return its number for ``remove``."""
        _log.info("fault is active", extra={"do": fault.do, "verbs": fault.verbs, "resources": fault.resources})
        return self._book.add(fault)

    def remove(self, number: int) -> bool:
        """Remove a fault, and return whether it was active."""
        return self._book.remove(number)

    def clear(self) -> None:
        """Remove all faults and end all stalls."""
        self._book.clear()
        for exchange in tuple(self._watches):
            exchange.trouble.lift()
            exchange.wake()

    def active(self) -> tuple[tuple[int, Fault, int], ...]:
        """Return number, fault and affected requests of the active faults, oldest first."""
        return self._book.active()

    def strike_watches(self, fault: Fault) -> int:
        """Apply a fault to the open watches in its scope, and return their number.

        Raises:
            InvalidArgumentError: If the fault is not for watches (``end``, ``cut``, ``expire``, ``stall``).
        """
        if fault.do not in ON_WATCHES:
            raise InvalidArgumentError(
                f"must be one of {', '.join(sorted(ON_WATCHES))}, got {fault.do!r}.", argument="Fault.do"
            )
        struck = [item for item in self._watches if fault.matches(item.info, item.user.name)][: fault.count]
        for exchange in struck:
            exchange.trouble.order(fault)
            exchange.wake()
        return len(struck)

    def compact(self, revision: int | None = None) -> None:
        """Drop the changes up to a revision, by default all; older watches, lists and tokens get 410 Expired."""
        self._store.compact(self._store.revision if revision is None else revision)

    def reset_revisions(self, revision: int = 1) -> None:
        """Renumber resource versions from a revision, like after a move to a new etcd, and cut all watches.

        Raises:
            InvalidArgumentError: If the revision is less than 1.
        """
        if revision < 1:
            raise InvalidArgumentError(f"must be >= 1, got {revision}.", argument="revision")
        self._store.renumber(revision=revision)
        self.strike_watches(Fault(do="cut"))

    def restore_backup(self, revision: int) -> None:
        """Restore the objects of a past revision, like from an etcd backup, and cut all watches.

        Resource versions jump by a million, so every watch must restart with a list. The served CRDs do not change,
        even if they were created or deleted since that revision.

        Raises:
            InvalidArgumentError: If the changes since that revision were dropped.
        """
        try:
            self._store.restore_backup(revision)
        except CompactedError as error:
            raise InvalidArgumentError(f"must not be compacted, got {revision}: {error}", argument="revision") from None
        self.strike_watches(Fault(do="cut"))

    async def restart(self, seconds: float = 0.0) -> None:
        """Reset all connections, then listen on the same port again after some seconds without losing data.

        Cancellation during the wait leaves the server without a socket.
        """
        await self._restart(seconds)

    def strike(self, info: RequestInfo, user: User) -> Strike:
        """Decide about the faults of a request."""
        return self._book.strike(info, user=user.name, draw=self._random.random)

    @contextmanager
    def watching(self, exchange: Exchange) -> Generator[None]:
        """Register an open watch."""
        self._watches[exchange] = None
        try:
            yield
        finally:
            del self._watches[exchange]

    async def answer(self, exchange: Exchange) -> tuple[int, dict[str, object]] | None:
        """Handle an HTTP request, and return status and object, or None for an unknown path.

        Raises ApiError: 403 without permission, and 400 for an invalid request.
        """
        if MASTERS not in exchange.user.groups:
            wanted = Attributes(user=exchange.user, verb=exchange.info.verb, path=exchange.info.path)
            raise forbidden(wanted)
        request = exchange.request
        fields: dict[str, object] = {}
        if request.method == "POST":
            body = await read_body(request)
            fields = await read_fields(request, body=body) if body.strip() else {}
        try:
            return self._verb(request, exchange.segments[1:], fields)
        except (ValueError, TypeError) as error:
            raise status_errors.bad_request(f"invalid fault: {error}") from None

    def _verb(
        self, request: web.BaseRequest, segments: tuple[str, ...], fields: dict[str, object]
    ) -> tuple[int, dict[str, object]] | None:
        match (request.method, *segments):
            case ("GET", "faults"):
                listed = [
                    {"number": number, "struck": struck, **fault.to_fields()} for number, fault, struck in self.active()
                ]
                return 200, {"faults": listed, "watches": self.open_watches}
            case ("POST", "faults"):
                return 201, {"number": self.add(Fault.from_fields(fields))}
            case ("DELETE", "faults"):
                self.clear()
                return 200, {}
            case ("DELETE", "faults", number):
                return (200, {}) if _NUMBER.fullmatch(number) and self.remove(int(number)) else None
            case ("POST", "watches"):
                return 200, {"struck": self.strike_watches(Fault.from_fields(fields))}
            case ("POST", "compact"):
                self.compact(_number(fields, "revision", self._store.revision))
                return 200, {"compacted": self._store.compacted}
            case ("POST", "reset-revisions"):
                self.reset_revisions(_number(fields, "revision", 1))
                return 200, {"revision": self._store.revision}
            case ("POST", "restart"):
                self._restart_soon(_seconds(fields))
                return 202, {}
            case _:
                return None

    def _restart_soon(self, seconds: float) -> None:
        if not 0 <= seconds < 3600:
            raise ValueError(f"seconds must be 0 to 3600, got {seconds!r}")

        async def soon() -> None:
            # Wait until the response was sent.
            await asyncio.sleep(_ANSWERED)
            await self._restart(seconds)

        self._restarting = asyncio.create_task(soon(), name="deltaloop-apiserver-restart")

    async def close(self) -> None:
        """Cancel a pending restart."""
        task, self._restarting = self._restarting, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _seconds(fields: dict[str, object]) -> float:
    value = fields.get("seconds", 0.0)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError("seconds must be a number")
    return value


def _number(fields: dict[str, object], name: str, default: int) -> int:
    value = fields.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number")
    return value
