"""Processes of the controller."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import msgspec

from deltaloop.api.redaction import redact

_STOP_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class LogLine:
    """Log record of a replica. ``fields`` contains its message, level, logger and extras."""

    identity: str
    fields: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.fields.get("message", ""))


@final
@dataclass(slots=True, eq=False)
class DemoReplica:
    identity: str
    process: asyncio.subprocess.Process
    on_line: Callable[[LogLine], None]
    on_end: Callable[[], None]
    log_file: Path | None = None
    lines: list[LogLine] = field(default_factory=list[LogLine])
    _asked_to_end: bool = False
    _reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        identity: str,
        arguments: list[str],
        *,
        on_line: Callable[[LogLine], None],
        on_end: Callable[[], None],
        log_file: Path | None = None,
    ) -> DemoReplica:
        """Start a replica in a new session, so that Ctrl-C in the terminal only reaches the demo."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "deltaloop.cli.demo.replica",
            f"--identity={identity}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=1 << 20,
        )
        replica = cls(identity, process, on_line, on_end, log_file)
        replica._reader = asyncio.create_task(replica._read(), name=f"log of {identity}")
        return replica

    @property
    def running(self) -> bool:
        return self.process.returncode is None

    @property
    def died(self) -> str:
        """Description of an unexpected end of the process, or an empty string."""
        if self.running or self._asked_to_end:
            return ""
        last = f"; last log message: {self.lines[-1].message}" if self.lines else ""
        return f"{self.identity} ended unexpectedly with exit code {self.process.returncode}{last}"

    def logged(self, message: str) -> LogLine | None:
        return next((line for line in reversed(self.lines) if line.message == message), None)

    async def kill(self) -> None:
        """Kill the process like a crash, and wait for its end."""
        self._asked_to_end = True
        self._signal(signal.SIGKILL)
        await self._finish()

    async def stop(self) -> int:
        """Stop the process, wait for its end, and return its exit code. After a timeout or a cancellation, kill it."""
        self._asked_to_end = True
        try:
            self._signal(signal.SIGTERM)
            async with asyncio.timeout(_STOP_TIMEOUT):
                await self.process.wait()
        except TimeoutError:
            await self.kill()
        finally:
            self._signal(signal.SIGKILL)
        await self._finish()
        return self.process.returncode or 0

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is running; ``process.kill`` would take the exit code from asyncio's watcher."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    async def _finish(self) -> None:
        await self.process.wait()
        if self._reader is not None:
            await self._reader
        if self.process.stdin is not None:
            self.process.stdin.close()

    async def _read(self) -> None:
        stream = self.process.stderr
        if stream is None:
            return
        while raw := await stream.readline():
            if self.log_file is not None:
                with self.log_file.open("ab") as file:
                    file.write(raw)
            line = LogLine(self.identity, _parse(raw))
            self.lines.append(line)
            self.on_line(line)
        await self.process.wait()
        self.on_end()


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        fields = None
    if isinstance(fields, dict):
        return fields  # pyright: ignore[reportUnknownVariableType]
    return {"message": redact(raw.decode(errors="replace").rstrip()), "level": "ERROR", "logger": "stderr"}
