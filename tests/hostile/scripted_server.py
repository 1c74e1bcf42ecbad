"""An API server for config maps, written byte by byte, that does what it is told, wrong things included.

It speaks HTTP/1.1 over a real socket. Without a script it lists, pages and watches as a real server does. ``lists``
and ``watches_answered`` hold answers for the next requests; an open watch is a ``Stream`` that the test may write to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from deltaloop.api.status import Status, StatusCause, StatusDetails
from deltaloop.api.watch_event import INITIAL_EVENTS_END


@dataclass(frozen=True)
class Reply:
    """A complete answer, whatever it is."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


def status_reply(
    code: int, reason: str = "", *, message: str = "", cause: str = "", retry_after: int | None = None
) -> Reply:
    headers = (("Retry-After", str(retry_after)),) if retry_after is not None else ()
    details = StatusDetails(causes=(StatusCause(cause),)) if cause else None
    return Reply(code, Status(code=code, reason=reason, message=message, details=details).to_json(), headers)


TOO_LARGE = "ResourceVersionTooLarge"
HTML = b"<!DOCTYPE html><html><head><title>Please log in</title></head><body>...</body></html>"


@dataclass(frozen=True)
class Asked:
    """One request that came."""

    at: float
    verb: str
    query: dict[str, str]

    @property
    def version(self) -> str:
        return self.query.get("resourceVersion", "")


@dataclass(eq=False)
class Stream:
    """An open watch."""

    writer: asyncio.StreamWriter
    version: int
    bookmarks: bool
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def line(self, kind: str, obj: dict[str, Any]) -> None:
        """Send an event as one chunk."""
        self.chunk(event_line(kind, obj))

    def chunk(self, data: bytes) -> None:
        """Send any bytes as one chunk."""
        self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    def raw(self, data: bytes) -> None:
        """Send any bytes."""
        if not self.writer.is_closing():
            self.writer.write(data)

    def end(self) -> None:
        """End the stream in order."""
        self.raw(b"0\r\n\r\n")
        self.over.set()


class WatchList(Enum):
    """What the server does about a watch that is to begin with the whole state."""

    OFFERED = "it begins with the whole state, and a bookmark says where that ends"
    UNENDING = "the bookmark never comes"
    REFUSED = "422, as a server does that has the feature turned off"


def event_line(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}


class ScriptedServer:
    """The server; ``async with`` it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.version = 100
        self.oldest = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.events: list[tuple[int, str, dict[str, Any]]] = []
        self.lists: deque[Reply | None] = deque()
        self.watch_answers: deque[Reply | None] = deque()
        self.is_silent_about_the_future = False
        self.watch_list = WatchList.OFFERED
        self.asked: list[Asked] = []
        self.streams: list[Stream] = []
        self.listed = 0
        self._uids = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    # What the world does

    def put(self, name: str, value: str = "") -> dict[str, Any]:
        """Create or change an object, and tell the watches."""
        known = self.objects.get(name)
        obj = self._make(name, value, known["metadata"]["uid"] if known else None)
        self.objects[name] = obj
        self._record("MODIFIED" if known else "ADDED", obj)
        return obj

    def put_silently(self, name: str, value: str = "") -> dict[str, Any]:
        """Create or change an object, and tell nobody."""
        known = self.objects.get(name)
        obj = self._make(name, value, known["metadata"]["uid"] if known else None)
        self.objects[name] = obj
        return obj

    def remove(self, name: str) -> dict[str, Any]:
        """Delete an object, and tell the watches."""
        self.version += 1
        obj = self.objects.pop(name)
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self._record("DELETED", obj)
        return obj

    def send_bookmark(self) -> None:
        for stream in self.streams:
            stream.version = self.version
            stream.line("BOOKMARK", bookmark(self.version))

    def expire(self) -> None:
        """Forget all past: what begins in it gets 410."""
        self.oldest = self.version
        self.events.clear()

    def _make(self, name: str, value: str, uid: str | None) -> dict[str, Any]:
        self.version += 1
        if uid is None:
            self._uids += 1
            uid = f"uid-{self._uids}"
        metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(self.version)}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"value": value}}

    def _record(self, kind: str, obj: dict[str, Any]) -> None:
        self.events.append((self.version, kind, obj))
        for stream in self.streams:
            stream.version = self.version
            stream.line(kind, obj)

    # Serving

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected,
            "127.0.0.1",
            0,
            ssl=self._tls,
            ssl_shutdown_timeout=0.1 if self._tls else None,  # a client that was cut off never says goodbye
        )
        scheme = "https" if self._tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while not writer.is_closing():
                    head = await reader.readuntil(b"\r\n\r\n")
                    await self._serve(head.split(b" ", 2)[1].decode(), reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        query = {name: values[-1] for name, values in parse_qs(urlsplit(target).query).items()}
        # A list of one object asks for nothing but the version.
        verb = "watch" if query.get("watch") == "true" else "probe" if query.get("limit") == "1" else "list"
        self.asked.append(Asked(asyncio.get_running_loop().time(), verb, query))
        script = {"watch": self.watch_answers, "list": self.lists}.get(verb)
        reply = script.popleft() if script else None
        if reply is None:
            reply = self._refuse_watch(query) if verb == "watch" else self._list(query, counts=verb == "list")
        if reply is not None:
            write_reply(writer, reply)
            await writer.drain()
            return
        await self._watch(query, reader, writer)

    def _list(self, query: dict[str, str], *, counts: bool) -> Reply:
        asked = query.get("resourceVersion", "")
        if asked.isdigit() and int(asked) > self.version:
            return status_reply(504, "Timeout", message=f"Too large resource version: {asked}", cause=TOO_LARGE)
        start = int(query.get("continue", "0"))
        limit = int(query.get("limit", "0")) or len(self.objects)
        names = sorted(self.objects)
        metadata = {"resourceVersion": str(self.version)}
        # From "0" a real server answers from its cache, in one page.
        if asked != "0" and start + limit < len(names):
            metadata["continue"] = str(start + limit)
            names = names[: start + limit]
        items = [self.objects[name] for name in names[start:]]
        self.listed += counts and "continue" not in metadata
        fields = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}
        return Reply(200, json.dumps(fields).encode())

    def _refuse_watch(self, query: dict[str, str]) -> Reply | None:
        since = int(query.get("resourceVersion") or 0)
        streamed = query.get("sendInitialEvents") == "true"
        if streamed and self.watch_list is WatchList.REFUSED:
            return status_reply(422, "Invalid", message="sendInitialEvents is forbidden for watch")
        if since < self.oldest and not streamed:
            return status_reply(410, "Expired", message=f"too old resource version: {since} ({self.oldest})")
        if since > self.version and not self.is_silent_about_the_future:
            return status_reply(504, "Timeout", message=f"Too large resource version: {since}", cause=TOO_LARGE)
        return None

    async def _watch(self, query: dict[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        since = int(query.get("resourceVersion") or 0)
        stream = Stream(writer, since, query.get("allowWatchBookmarks") == "true")
        stream.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        if query.get("sendInitialEvents") == "true":
            self._send_state(stream)
        else:
            for version, kind, obj in self.events:
                if version > since:
                    stream.line(kind, obj)
        self.streams.append(stream)
        gone = asyncio.ensure_future(reader.read(1))
        over = asyncio.ensure_future(stream.over.wait())
        seconds = float(query.get("timeoutSeconds", "3600"))
        try:
            done, _ = await asyncio.wait({gone, over}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                stream.end()
            if gone in done:
                writer.close()
        finally:
            self.streams.remove(stream)
            for waiting in (gone, over):
                waiting.cancel()
            await asyncio.gather(gone, over, return_exceptions=True)

    def _send_state(self, stream: Stream) -> None:
        for obj in self.objects.values():
            stream.line("ADDED", obj)
        if self.watch_list is WatchList.OFFERED:
            end = bookmark(self.version)
            end["metadata"]["annotations"] = {INITIAL_EVENTS_END: "true"}
            stream.line("BOOKMARK", end)
            self.listed += 1


def write_reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    headers = [("Content-Type", reply.content_type), ("Content-Length", str(len(reply.body))), *reply.headers]
    lines = [f"HTTP/1.1 {reply.status} Whatever", *(f"{name}: {value}" for name, value in headers), "", ""]
    writer.write("\r\n".join(lines).encode() + reply.body)
