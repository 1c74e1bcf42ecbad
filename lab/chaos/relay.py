"""Stands between one candidate and the API server, and does to its requests what it is told to."""

from __future__ import annotations

import asyncio
import random
from typing import Literal, TypeAlias

import aiohttp
from aiohttp import web

from deltaloop.leaderelection.clock import boot_time

Mode: TypeAlias = Literal["pass", "cut", "hang", "slow", "conflict", "error"]


class Relay:
    """One candidate's way to the server.

    Attributes:
        written_at: When the last write that the server carried out came in here.
    """

    def __init__(self, server: str, numbers: random.Random, *, jitter: float, slow: float) -> None:
        """Pass on to ``server``; each request waits up to ``jitter`` seconds, and ``slow`` more in that mode."""
        self._mode: Mode = "pass"
        self._mended = asyncio.Event()
        self.written_at = -1.0
        self.url = ""
        self._server = server
        self._numbers = numbers
        self._jitter = jitter
        self._slow = slow
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.ServerRunner | None = None

    @property
    def mode(self) -> Mode:
        """What happens to its requests from now on; requests that hang are cut when that ends."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._mended.set()
        self._mended = asyncio.Event()

    async def start(self) -> None:
        """Listen."""
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        came_at = boot_time()
        body = await request.read()
        await asyncio.sleep(self._numbers.uniform(0, self._jitter))
        mode = self.mode
        if mode == "hang":
            await self._mended.wait()
        if mode in ("cut", "hang"):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if mode == "slow":
            await asyncio.sleep(self._slow)
        if mode == "conflict" and request.method == "PUT":
            return _status(409, "Conflict")
        if mode == "error":
            return _status(500, "InternalError")
        assert self._session is not None
        headers = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        url = self._server + request.raw_path
        given = self._session.request(
            request.method, url, headers=headers, data=body, skip_auto_headers=("Content-Type",)
        )
        async with given as answer:
            payload = await answer.read()
            if request.method != "GET" and answer.status < 300:
                self.written_at = came_at
            return web.Response(status=answer.status, body=payload, content_type="application/json")


def _status(code: int, reason: str) -> web.Response:
    fields = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return web.json_response({**fields, "message": "a storm"}, status=code)
