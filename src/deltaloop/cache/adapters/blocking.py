"""Read the response of a blocking client in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol, final

from deltaloop.client.transport.protocol import Headers, StreamResponse

_logger: Final = logging.getLogger("deltaloop.cache")
_SLICES_BETWEEN: Final = 16
_PATIENCE: Final = 2.0


class BlockingAnswer(Protocol):
    """Response of a blocking client. ``abort`` is called from another thread, all other methods from one thread."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def read(self) -> bytes:
        """Return the next chunk as soon as it arrives, or empty bytes at the end."""
        ...

    def abort(self) -> None:
        """Make a ``read`` that blocks in another thread return or raise."""
        ...

    def close(self) -> None: ...


@asynccontextmanager
async def in_thread(send: Callable[[], BlockingAnswer], *, name: str) -> AsyncGenerator[StreamResponse, None]:
    """Send a request and read its response in a thread; ``send`` returns when the headers have arrived."""
    reader = _Reader(send, name)
    try:
        answer = await reader.start()
        yield StreamResponse(status=answer.status, headers=answer.headers, chunks=reader)
    finally:
        await reader.stop()


@final
class _Reader:
    def __init__(self, send: Callable[[], BlockingAnswer], name: str) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._opened: asyncio.Future[BlockingAnswer] = self._loop.create_future()
        self._ended = asyncio.Event()
        self._slices: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self._room = threading.Semaphore(_SLICES_BETWEEN)
        self._lock = threading.Lock()
        self._stopping = False
        self._answer: BlockingAnswer | None = None
        self._is_over = False

    async def start(self) -> BlockingAnswer:
        threading.Thread(target=self._run, name=self._name, daemon=True).start()
        return await self._opened  # after a cancel, the thread discards its response

    async def stop(self) -> None:
        with self._lock:
            self._stopping = True
            answer = self._answer
            if answer is not None:
                with contextlib.suppress(Exception):  # errors of a foreign close do not matter
                    answer.abort()
        self._room.release()
        if answer is None:
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._ended.wait()
        except TimeoutError:
            _logger.warning("waiting for a thread that reads a watch", extra={"reader": self._name})

    def __aiter__(self) -> _Reader:
        return self

    async def __anext__(self) -> bytes:
        if self._is_over:
            raise StopAsyncIteration
        item = await self._slices.get()
        self._room.release()
        if isinstance(item, bytes) and item:
            return item
        self._is_over = True
        if isinstance(item, Exception):
            raise item
        raise StopAsyncIteration

    # In the thread

    def _run(self) -> None:
        try:
            answer = self._send()
        except Exception as error:  # noqa: BLE001 - passed on to the caller of start
            self._hand_over(self._fail, error)
            return
        with self._lock:
            self._answer = answer
            stopping = self._stopping
        try:
            if not stopping:
                self._hand_over(self._open, answer)
                self._read(answer)
        finally:
            with self._lock:
                self._answer = None  # the connection may be in its pool again, so it must not be shut down
            with contextlib.suppress(Exception):  # errors of a foreign close do not matter
                answer.close()
            self._hand_over(self._ended.set)

    def _read(self, answer: BlockingAnswer) -> None:
        while True:
            self._room.acquire()
            if self._stopping:
                return
            try:
                data = answer.read()
            except Exception as error:  # noqa: BLE001 - passed on to the reader
                self._hand_over(self._slices.put_nowait, error)
                return
            self._hand_over(self._slices.put_nowait, data)
            if not data:
                return

    def _hand_over(self, call: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call, *arguments)

    # On the loop

    def _open(self, answer: BlockingAnswer) -> None:
        if not self._opened.done():
            self._opened.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if not self._opened.done():
            self._opened.set_exception(error)
