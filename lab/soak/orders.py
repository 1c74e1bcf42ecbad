"""A process that is asked over its standard input: a line of JSON for each order, and one for each answer.

It ends when its standard input does: when whoever started it is gone, however that went.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self, final

Orders = dict[str, Callable[..., Awaitable[object]]]


async def obey(orders: Orders) -> None:
    """Carry out orders, one after the other, until standard input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say({"ready": os.getpid()})
    while line := await reader.readline():
        order = json.loads(line)
        say(await orders[order.pop("order")](**order))


def say(answer: object) -> None:
    """Write one answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


@final
class Servant:
    """Such a process, from outside."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, module: str, *arguments: str, log: Path) -> Self:
        """Start one and wait until it is ready; what it writes on standard error is added to ``log``."""
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, *arguments, stdin=PIPE, stdout=PIPE, stderr=errors
            )
        servant = cls(process)
        try:
            await servant._answer(module)
        except BaseException:
            await servant.end(kill=True)
            raise
        return servant

    async def ask(self, order: str, **fields: Any) -> Any:
        """Give an order and wait for the answer, a minute at most."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"order": order, **fields}).encode() + b"\n")
        return await self._answer(order)

    async def _answer(self, what: str) -> Any:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            line = await self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"process {self.process.pid} has ended before it answered {what!r}")
        return json.loads(line)

    async def end(self, *, kill: bool = False) -> int:
        """End it, in good order or by a signal, and return its exit code."""
        if self.process.returncode is None:
            if kill:
                self.process.kill()
            elif self.process.stdin is not None:
                self.process.stdin.close()
            try:
                async with asyncio.timeout(60):
                    return await self.process.wait()
            except TimeoutError:
                self.process.kill()
        return await self.process.wait()
