"""What a server answered once, as a server: to compare with it where it is not at hand."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.corpus.outcomes import Outcome
from lab.corpus.requests import Request
from lab.corpus.sending import Server, shows_what_is_stored


@dataclass
class Recording:
    """Answers by the keys of their requests."""

    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])

    async def ask(self, key: str, request: Request, stored: Mapping[str, Any] | None) -> tuple[Outcome, Any]:
        outcome = self.outcomes.get(key)
        if outcome is None:
            return Outcome(599, "NotRecorded", f"nothing is recorded for {key}"), None
        return outcome, {} if shows_what_is_stored(request, outcome) else None

    def write(self, file: Path) -> None:
        """Write it, one line for each answer; the same answers make the same file."""
        lines = [json.dumps([key, self.outcomes[key].as_json()], sort_keys=True) for key in sorted(self.outcomes)]
        file.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))

    @classmethod
    def read(cls, file: Path) -> Recording:
        """Read a file of ``write``."""
        lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        return cls({key: Outcome.from_json(read) for key, read in lines})


@dataclass
class Recorder:
    """A server whose answers are kept; who asks the same once more is given the same answer."""

    server: Server
    recording: Recording = field(default_factory=Recording)
    _asked: dict[str, asyncio.Task[tuple[Outcome, Any]]] = field(
        default_factory=dict[str, "asyncio.Task[tuple[Outcome, Any]]"]
    )

    async def ask(self, key: str, request: Request, stored: Mapping[str, Any] | None) -> tuple[Outcome, Any]:
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self.server.ask(key, request, stored))
        outcome, body = await self._asked[key]
        self.recording.outcomes[key] = outcome
        return outcome, body
