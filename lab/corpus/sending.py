"""Send chains of requests to two servers at once and count what they answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
from tests.apiserver.serving import Caller

from lab.corpus.counting import Counts
from lab.corpus.outcomes import Outcome, outcome_of
from lab.corpus.requests import Chain, Request, of_kind

AT_ONCE = 12
SECONDS = 120.0


class Server(Protocol):
    """Somebody who answers requests: a server, or what it answered once."""

    async def ask(self, key: str, request: Request, stored: Mapping[str, Any] | None) -> tuple[Outcome, Any]:
        """Return the answer, and the body as it came; ``stored`` is the object as it answered it last."""
        ...


@dataclass(frozen=True)
class LiveServer:
    """A server that runs."""

    caller: Caller

    async def ask(self, key: str, request: Request, stored: Mapping[str, Any] | None) -> tuple[Outcome, Any]:
        headers = {"Content-Type": request.content_type}
        if request.accept:
            headers["Accept"] = request.accept
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self.caller.call(request.method, request.path, request.body_for(stored), **headers)
        except (TimeoutError, aiohttp.ClientError) as error:
            return Outcome(599, "NoAnswer", repr(error)), None
        outcome = outcome_of(answer, lambda body: of_kind(request, body))
        return outcome, json.loads(answer.body) if shows_what_is_stored(request, outcome) else None


def shows_what_is_stored(request: Request, outcome: Outcome) -> bool:
    """Return whether an answer shows the object as it is stored now."""
    return outcome.accepted and request.keeps and request.changes


@dataclass
class Sender:
    """Two servers, and what they answered."""

    ours: Server
    real: Server
    counts: Counts = field(default_factory=Counts)

    async def send_all(self, project: str, chains: Iterable[Chain], *, at_once: int = AT_ONCE) -> None:
        """Send chains, some at the same time."""
        waiting = iter(chains)

        async def work() -> None:
            for chain in waiting:
                await self.send(project, chain)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())

    async def send(self, project: str, chain: Chain, *, end: bool = True) -> bool:
        """Send one chain; return whether both servers have stored what it is about by its end.

        Args:
            project: Under which it is counted.
            chain: What is sent.
            end: Whether to clean up if it ends early.
        """
        kept: list[Any] = [None, None]
        for number, request in enumerate(chain.requests):
            stored = kept[0] is not None and kept[1] is not None
            if request.only_if_refused and stored:
                continue
            if not stored and not request.always and request.method != "POST" and _needs_an_object(chain):
                break
            key = f"{project}/{chain.name}/{number}"
            asked = (server.ask(key, request, last) for server, last in zip((self.ours, self.real), kept, strict=True))
            (ours, our_body), (real, real_body) = await asyncio.gather(*asked)
            self.counts.add(project, chain.name, chain.origin, request, ours, real)
            for at, body in enumerate((our_body, real_body)):
                if body is not None:
                    kept[at] = body
            if request.changes and ours.accepted != real.accepted:
                if end:
                    await self._clean_up(project, chain)
                return False
        return kept[0] is not None and kept[1] is not None

    async def _clean_up(self, project: str, chain: Chain) -> None:
        for number, request in enumerate(chain.cleanup):
            for server in (self.ours, self.real):
                await server.ask(f"{project}/{chain.name}/end-{number}", request, None)


def _needs_an_object(chain: Chain) -> bool:
    return any(request.keeps for request in chain.requests)
