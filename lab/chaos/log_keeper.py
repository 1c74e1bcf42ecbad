"""The log that leaders write to: notes when each write comes, and refuses a fencing token smaller than one it has seen.

A write that was sent after its sender's own deadline is *late*. It can only come from a process that was paused between
asking whether it leads and sending; the token has to stop it if somebody else has written meanwhile. Everything else is
a violation: a write whose question came after the deadline, a write long after the last renewal that the sender's relay
saw, an old token that was not paused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltaloop.leaderelection.clock import boot_time

SLACK = 0.1


@dataclass
class LogKeeper:
    """Everything that leaders wrote.

    Attributes:
        leads_at_most_until: The latest moment at which a candidate may lead, from what its relay saw of its renewals.
        was_paused: Whether the driver had a candidate paused at some moment between two.
    """

    leads_at_most_until: Callable[[str], float]
    was_paused: Callable[[str, float, float], bool]
    token: int = -1
    holder: str = ""
    first_write_at: dict[int, float] = field(default_factory=dict[int, float])
    writes_of_token: int = 0
    accepted: int = 0
    refused_by_guard: int = 0
    late_paused: int = 0
    late_preempted: int = 0
    stopped_by_token: int = 0
    violations: list[str] = field(default_factory=list[str])
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, path: Path) -> asyncio.Server:
        """Listen on a Unix socket: one JSON object a line, each answered by a line."""
        return await asyncio.start_unix_server(self._talk, path)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                answer = self.note(json.loads(line), boot_time())
                writer.write(answer.encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass  # it was killed
        finally:
            writer.close()

    def note(self, write: dict[str, Any], arrived_at: float) -> str:
        """Take one write, or the news that a guard refused one."""
        identity, token = str(write["identity"]), int(write["token"])
        if write["kind"] == "guard":
            self.refused_by_guard += 1
            return "noted"
        asked_at, deadline, sent_at = float(write["asked_at"]), float(write["deadline"]), float(write["sent_at"])
        paused = self.was_paused(identity, asked_at, arrived_at)
        about = f"{identity} token {token}: asked {asked_at - deadline:+.4f} s, sent {sent_at - deadline:+.4f} s"
        if asked_at >= deadline:
            self.violations.append(f"asked after the deadline and was not refused: {about}")
        elif sent_at >= deadline:
            if paused:
                self.late_paused += 1
            else:
                self.late_preempted += 1
        if not paused and sent_at > self.leads_at_most_until(identity) + SLACK:
            self.violations.append(f"written long after the last renewal: {about}")
        if token < self.token:
            self.stopped_by_token += 1
            if not paused:
                self.violations.append(f"an old token without a pause (seen: {self.token}): {about}")
            return "refused"
        if token > self.token:
            self.token, self.holder, self.writes_of_token = token, identity, 0
            self.first_write_at[token] = arrived_at
        self.accepted += 1
        self.writes_of_token += 1
        self.changed.set()
        return "accepted"
