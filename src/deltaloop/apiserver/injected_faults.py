"""Server-side faults, as calls on the server and as HTTP verbs.

    GET    /deltaloop/faults              the faults that are on
    POST   /deltaloop/faults              switch one on; the body is a fault, the answer has its number
    DELETE /deltaloop/faults[/NUMBER]     switch one off, or all; stalls end
    POST   /deltaloop/watches             {"do": "cut" | "end" | "expire" | "stall", ...}: the open watches in its scope
    POST   /deltaloop/compact             {"revision": N}: forget the changes up to it, all by default
    POST   /deltaloop/reset-revisions     {"revision": N}: count anew from it, 1 by default
    POST   /deltaloop/restart             {"seconds": N}: close every connection, be away so long, listen again

All need a member of ``system:masters``, which the server's own token stands for.
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

from deltaloop.apiserver.body import read_body, read_fields
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.fault_rules import ON_WATCHES, Fault, FaultBook, Strike
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.storage.store_errors import CompactedError
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import MASTERS, RequestInfo
from deltaloop.apiserver.exchange import Exchange

_log: Final = logging.getLogger("deltaloop.apiserver")
ROOT: Final = "deltaloop"
_ANSWERED: Final = 0.05
_NUMBER: Final = re.compile("[0-9]{1,9}")


@final
class Faults:
    """The faults of one server; ``server.faults``."""

    def __init__(
        self, store: RevisionStore, *, seed: int | None = None, restart: Callable[[float], Awaitable[None]]
    ) -> None:
        """Begin without faults.

        Args:
            store: What is compacted and renumbered.
            seed: Of the chances; None is another one each time.
            restart: Closes the server's sockets for a while.
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
        """How many watches are open now."""
        return len(self._watches)

    def add(self, fault: Fault) -> int:
        """Switch a fault on, and return the number to switch it off by."""
        _log.info("a fault is on", extra={"do": fault.do, "verbs": fault.verbs, "resources": fault.resources})
        return self._book.add(fault)

    def remove(self, number: int) -> bool:
        """Switch a fault off, and tell whether it was on."""
        return self._book.remove(number)

    def clear(self) -> None:
        """Switch all faults off and end all stalls."""
        self._book.clear()
        for exchange in tuple(self._watches):
            exchange.trouble.lift()
            exchange.wake()

    def active(self) -> tuple[tuple[int, Fault, int], ...]:
        """Return the faults that are on, oldest first: number, fault, how often it has struck."""
        return self._book.active()

    def strike_watches(self, fault: Fault) -> int:
        """Do something to the watches that are open now and in a fault's scope, and return how many they are.

        Raises:
            ValueError: If it is no fault of watches (``end``, ``cut``, ``expire``, ``stall``).
        """
        if fault.do not in ON_WATCHES:
            raise ValueError(f"{fault.do!r} is nothing that an open watch can suffer: {', '.join(sorted(ON_WATCHES))}")
        struck = [item for item in self._watches if fault.matches(item.info, item.user.name)][: fault.count]
        for exchange in struck:
            exchange.trouble.order(fault)
            exchange.wake()
        return len(struck)

    def compact(self, revision: int | None = None) -> None:
        """Forget changes up to a revision, all by default: older watches, lists and tokens get 410 Expired."""
        self._store.compact(self._store.revision if revision is None else revision)

    def reset_revisions(self, revision: int = 1) -> None:
        """Count resource versions anew from a revision, as after a move to a new etcd, and cut all watches.

        Raises:
            ValueError: If it is less than 1.
        """
        if revision < 1:
            raise ValueError(f"revision is {revision}; 1 or more is needed")
        self._store.renumber(revision=revision)
        self.strike_watches(Fault(do="cut"))

    def restore_backup(self, revision: int) -> None:
        """Have the objects of a revision again, as from a backup of etcd that was made then, and cut all watches.

        Resource versions go on a million later, so that every watch has to begin with a list. Definitions that were
        created or deleted since then are served as before.

        Raises:
            ValueError: If changes since that revision are forgotten.
        """
        try:
            self._store.restore_backup(revision)
        except CompactedError as error:
            raise ValueError(f"revision {revision} cannot be restored: {error}") from None
        self.strike_watches(Fault(do="cut"))

    async def restart(self, seconds: float = 0.0) -> None:
        """Reset every connection, be away for some seconds, then listen on the same port; nothing is forgotten.

        Cancellation while away leaves the server without a socket.
        """
        await self._restart(seconds)

    def strike(self, info: RequestInfo, user: User) -> Strike:
        """Decide what happens to a request."""
        return self._book.strike(info, user=user.name, draw=self._random.random)

    @contextmanager
    def watching(self, exchange: Exchange) -> Generator[None]:
        """Know a watch while it is open."""
        self._watches[exchange] = None
        try:
            yield
        finally:
            del self._watches[exchange]

    async def answer(self, exchange: Exchange) -> tuple[int, dict[str, object]] | None:
        """Answer an HTTP verb with a code and an object; None if there is none such.

        Raises:
            ApiError: 403 for those who may not, 400 for what cannot be meant.
        """
        if MASTERS not in exchange.user.groups:
            raise status_errors.forbidden_path(exchange.info.path, user=exchange.user.name, verb=exchange.info.verb)
        request = exchange.request
        fields: dict[str, object] = {}
        if request.method == "POST":
            body = await read_body(request)
            fields = await read_fields(request, body=body) if body.strip() else {}
        try:
            return self._verb(request, exchange.segments[1:], fields)
        except (ValueError, TypeError) as error:
            raise status_errors.bad_request(f"the fault cannot be meant: {error}") from None

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
            raise ValueError(f"seconds is {seconds!r}; 0 to 3600 is needed")

        async def soon() -> None:
            # Long enough for the answer to go out.
            await asyncio.sleep(_ANSWERED)
            await self._restart(seconds)

        self._restarting = asyncio.create_task(soon(), name="deltaloop-apiserver-restart")

    async def close(self) -> None:
        """Give up a restart that is on its way."""
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
