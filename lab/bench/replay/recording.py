"""Everything the replay server will ever send, prepared: lists and streams, in JSON and in protobuf."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, final

from lab.bench.replay import protobuf
from lab.bench.replay.objects import GROUP, pod, widget

PAGE: Final = 500
SENT: Final = "bench.deltaloop.dev/sent"
UNSENT: Final = b"%020d" % 0  # replaced, at the same length, by the time at which a paced event is sent
_BLOCK: Final = 1 << 20
_SPREAD: Final = 7_919  # a prime: the changes touch all objects, in no order


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the two kinds that are served."""

    path: str
    api_version: str
    kind: str
    plural: str
    in_list: Callable[[int, int], bytes]
    in_event: Callable[[int, int], bytes]


KINDS: Final = {
    "pods": Kind(
        "/api/v1/pods",
        "v1",
        "Pod",
        "pods",
        lambda number, version: pod(number, version, in_list=True),
        lambda number, version: pod(number, version, in_list=False),
    ),
    "widgets": Kind(f"/apis/{GROUP}/v1/widgets", f"{GROUP}/v1", "Widget", "widgets", widget, widget),
}


def chunk(body: bytes) -> bytes:
    """Return a body as one chunk of HTTP's chunked coding."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def changed_object(event: int, objects: int) -> int:
    """Return which object an event changes."""
    return event * _SPREAD % max(objects, 1)


def probed_version(objects: int, events: int) -> str:
    """Return the version of object 0 after the first so many events."""
    touching = [event for event in range(events) if changed_object(event, objects) == 0]
    return str(list_version(objects) + 1 + touching[-1]) if touching else "1"


def list_version(objects: int) -> int:
    """Return the version of the whole list."""
    return objects + 1000


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    current, size = list[bytes](), 0
    for each in chunks:
        current.append(each)
        size += len(each)
        if size >= _BLOCK:
            yield b"".join(current)
            current, size = [], 0
    if current:
        yield b"".join(current)


class Codec(Protocol):
    """How lists and events are written."""

    content_type: str
    watch_content_type: str
    between: bytes

    def items(self, objects: Iterable[bytes]) -> Iterator[bytes]:
        """Return objects as they stand in a list; they are given as JSON."""
        ...

    def around(self, kind: Kind, length: int, version: str, continuation: str, remaining: int) -> tuple[bytes, bytes]:
        """Return what stands before and after the items of a list, which are so long together."""
        ...

    def events(self, kind: Kind, objects: Iterable[bytes], event_type: str) -> Iterator[bytes]:
        """Return objects as events; they are given as JSON."""
        ...


@final
class JsonCodec:
    """JSON, as every client reads it."""

    content_type = "application/json"
    watch_content_type = "application/json"
    between = b","

    def items(self, objects: Iterable[bytes]) -> Iterator[bytes]:
        """Return them as they are."""
        return iter(objects)

    def around(self, kind: Kind, length: int, version: str, continuation: str, remaining: int) -> tuple[bytes, bytes]:
        """Return the list's own fields, which do not depend on ``length``."""
        del length
        metadata: dict[str, object] = {"resourceVersion": version}
        if continuation:
            metadata |= {"continue": continuation, "remainingItemCount": remaining}
        head = json.dumps({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata})
        return head[:-1].encode() + b',"items":[', b"]}\n"

    def events(self, kind: Kind, objects: Iterable[bytes], event_type: str) -> Iterator[bytes]:
        """Return lines."""
        del kind
        return (b'{"type":"%b","object":%b}\n' % (event_type.encode(), each) for each in objects)


@final
class ProtobufCodec:
    """Protobuf, as client-go's typed clients prefer it for built-in kinds."""

    content_type = protobuf.CONTENT_TYPE
    watch_content_type = protobuf.CONTENT_TYPE + ";stream=watch"
    between = b""

    def __init__(self, converter: str) -> None:
        """Convert with the Go peer."""
        self._converter = converter

    def items(self, objects: Iterable[bytes]) -> Iterator[bytes]:
        """Return them as the field ``items``."""
        return (protobuf.field(2, each) for each in protobuf.convert(self._converter, objects))

    def around(self, kind: Kind, length: int, version: str, continuation: str, remaining: int) -> tuple[bytes, bytes]:
        """Return the envelope and the list's metadata."""
        metadata = protobuf.list_metadata(version, continuation, remaining)
        head = protobuf.envelope_head(kind.api_version, f"{kind.kind}List", len(metadata) + length)
        return head + metadata, b""

    def events(self, kind: Kind, objects: Iterable[bytes], event_type: str) -> Iterator[bytes]:
        """Return frames."""
        messages = protobuf.convert(self._converter, objects)
        return (protobuf.event(kind.kind, each, event_type=event_type) for each in messages)


@final
class Recording:
    """What is sent in one format; the parts of an answer are sent one after the other, so that none is copied.

    Attributes:
        kind: What is served.
        objects: How many there are.
        events: How many changes are prepared.
        pages: The answers to a list in pages, the parts of each.
        whole: The answer to a list without a limit.
        initial: The beginning of a streamed list, each event a chunk.
    """

    def __init__(self, codec: Codec, kind: Kind, *, objects: int, events: int, paced: int) -> None:
        """Prepare all but what is made of it when it is first asked for."""
        self.kind = kind
        self.objects = objects
        self.events = events
        self._codec = codec
        self._version = list_version(objects)
        items = list(codec.items(kind.in_list(number, number + 1) for number in range(objects)))
        inner = [codec.between.join(items[start : start + PAGE]) for start in range(0, max(objects, 1), PAGE)]
        del items
        self.pages = [
            self._answer([each], str(end) if end < objects else "", max(0, objects - end))
            for each, end in zip(inner, range(PAGE, objects + PAGE + 1, PAGE), strict=False)
        ]
        parts = [part for each in inner for part in (each, codec.between) if part]
        self.whole = self._answer(parts[:-1] if codec.between else parts, "", 0)
        changes = (self._change(event) for event in range(events))
        self._changes = [chunk(each) for each in codec.events(kind, changes, "MODIFIED")]
        stamped = (self._stamped(events + event) for event in range(paced))
        self._paced = list(codec.events(kind, stamped, "MODIFIED"))
        self._initial: list[bytes] = []
        self._released: dict[int, list[bytes]] = {}

    def watch_headers(self) -> bytes:
        """Return what precedes a stream."""
        return (
            f"HTTP/1.1 200 OK\r\nContent-Type: {self._codec.watch_content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()

    def initial(self) -> list[bytes]:
        """Return a streamed list in blocks for the socket, each event a chunk of its own."""
        if not self._initial:
            objects = (self.kind.in_event(number, number + 1) for number in range(self.objects))
            added = self._codec.events(self.kind, objects, "ADDED")
            end = self._codec.events(self.kind, [self._bookmark()], "BOOKMARK")
            self._initial = [*_blocks(chunk(each) for each in added), *(chunk(each) for each in end)]
        return self._initial

    def released(self, events: int) -> list[bytes]:
        """Return the first events in blocks for the socket, each event a chunk of its own."""
        if events not in self._released:
            self._released[events] = list(_blocks(self._changes[:events]))
        return self._released[events]

    def paced(self, event: int, sent: int) -> bytes:
        """Return an event that says when it was sent."""
        return chunk(self._paced[event].replace(UNSENT, b"%020d" % sent, 1))

    def list_bytes(self) -> int:
        """Return the size of the whole list."""
        return sum(map(len, self.whole))

    def event_bytes(self) -> float:
        """Return the mean size of a change."""
        return sum(map(len, self._changes)) / max(1, len(self._changes))

    def _change(self, event: int) -> bytes:
        return self.kind.in_event(changed_object(event, self.objects), self._version + 1 + event)

    def _stamped(self, event: int) -> bytes:
        head, tail = self._change(event).split(b'"annotations":{', 1)
        return b'%b"annotations":{"%b":"%b",%b' % (head, SENT.encode(), UNSENT, tail)

    def _bookmark(self) -> bytes:
        metadata = {"resourceVersion": str(self._version), "annotations": {"k8s.io/initial-events-end": "true"}}
        body = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": metadata}
        return json.dumps(body).encode()

    def _answer(self, parts: list[bytes], continuation: str, remaining: int) -> list[bytes]:
        length = sum(map(len, parts))
        before, after = self._codec.around(self.kind, length, str(self._version), continuation, remaining)
        headers = answer_headers(200, self._codec.content_type, len(before) + length + len(after))
        return [headers + before, *parts, after] if after else [headers + before, *parts]


def answer_headers(status: int, content_type: str, length: int) -> bytes:
    """Return the head of an answer."""
    reason = {200: "OK", 404: "Not Found", 422: "Unprocessable Entity"}[status]
    return (f"HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n").encode()
