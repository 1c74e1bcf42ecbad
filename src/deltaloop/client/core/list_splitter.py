r"""Decode a list response while it arrives, so that the complete body is never in memory.

Some servers ignore ``limit``, and a list after an expired token has no limit. The splitter removes complete items from
the front of the ``items`` array as data arrives, so about a megabyte is buffered. Item boundaries are found without
inspecting each byte in Python:

1. The *head* ends with ``"items":[``. The position is correct if the head plus ``]}`` is a JSON object with empty
   ``items``, because a nested position, or one in a string, leaves brackets or a string open.
2. The first item shows how items begin (``{"metadata":``, ``{"apiVersion":"example.com/v1"``). The last occurrence of
   ``},`` plus this beginning in the buffer is a candidate for a boundary.
3. The data before it is split at each such occurrence, and each piece is decoded as an object. If all pieces are valid,
   all boundaries are correct. Otherwise the data is decoded as one array, or the previous candidate is used.
4. The head and the remaining data are a valid list with the last items. Decoding it detects all other faults.

A body without recognizable boundaries is collected and decoded at the end. After a failure the buffer must double
before the next attempt, so the work remains linear.
"""

from __future__ import annotations

import re
from typing import Final, Generic, TypeVar, final

import msgspec
from msgspec.structs import replace

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.managed_fields import decode_object_stripped
from deltaloop.api.resource import decode_object
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.core.list_decoding import decode_items, decode_list
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError, UnreadableItemsError

T = TypeVar("T")

_STEP: Final = 1024 * 1024
_CANDIDATES: Final = 8
_HEAD: Final = b'"items":['
_BEGINNING: Final = re.compile(rb'\{"[^"\\]{1,200}":(?:"[^"\\]{0,200}"|[\[{0-9tfn-])')


class _Empty(msgspec.Struct, gc=False):
    items: list[msgspec.Raw]


_decode_head: Final = msgspec.json.Decoder(_Empty).decode
_decode_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@final
class ListSplitter(Generic[T]):
    """Decoder of one list that receives the body in chunks."""

    __slots__ = (
        "_beginning",
        "_buffer",
        "_drops",
        "_head",
        "_items",
        "_next_try",
        "_resource_type",
        "_size",
        "_step",
        "_taken",
        "_unreadable",
    )

    def __init__(self, resource_type: ResourceType[T], *, step: int = _STEP, drop_managed_fields: bool = False) -> None:
        """Start a list. An attempt to decode items needs ``step`` further bytes."""
        self._drops = drop_managed_fields
        self._resource_type = resource_type
        self._step = step
        self._buffer = bytearray()
        self._head: bytes | None = None
        self._beginning = b""
        self._items: list[T] = []
        self._unreadable: list[UnreadableItemError] = []
        self._taken = 0
        self._next_try = step
        self._size = 0

    @property
    def pending(self) -> int:
        return len(self._buffer)

    def feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._buffer += chunk
        if len(self._buffer) < self._next_try:
            return
        if self._find_head() and self._take_items():
            self._next_try = len(self._buffer) + self._step
        else:
            self._next_try = 2 * len(self._buffer)

    def finish(self) -> ResourceList[T]:
        """Return the list after the last chunk, or raise errors like ``decode_list``."""
        if self._find_head():
            self._take_items()
        body, self._buffer = self._buffer, bytearray()
        if self._head is not None:
            body = bytearray(self._head) + body
        try:
            rest = decode_list(
                self._resource_type, body, first_index=self._taken, size=self._size, drop_managed_fields=self._drops
            )
        except UnreadableItemsError as error:
            rest = error.page
        whole = replace(rest, items=(*self._items, *rest.items), unreadable=(*self._unreadable, *rest.unreadable))
        self._items.clear()
        if whole.unreadable:
            raise UnreadableItemsError(whole)
        return whole

    def _find_head(self) -> bool:
        if self._head is not None:
            return True
        end = 0
        for _ in range(_CANDIDATES):
            found = self._buffer.find(_HEAD, end)
            if found < 0:
                return False
            end = found + len(_HEAD)
            head = bytes(self._buffer[:end])
            try:
                right = not _decode_head(head + b"]}").items
            except _ERRORS:
                right = False
            beginning = _BEGINNING.match(self._buffer, end) if right else None
            if beginning is not None:
                self._head = head
                self._beginning = b"}," + beginning.group()
                del self._buffer[:end]
                return True
        return False

    def _take_items(self) -> bool:
        end = len(self._buffer)
        for _ in range(_CANDIDATES):
            end = self._buffer.rfind(self._beginning, 0, end)
            if end < 0:
                return False
            if self._take_pieces(end):
                return True
            try:
                with memoryview(self._buffer) as view:
                    items = _decode_items(b"".join((b"[", view[: end + 1], b"]")))
            except _ERRORS:
                continue
            del self._buffer[: end + 2]
            self._decode(items)
            return True
        return False

    def _take_pieces(self, end: int) -> bool:
        pieces: list[T] = []
        decode = decode_object_stripped if self._drops else decode_object
        start = 0
        with memoryview(self._buffer) as view:
            while start <= end:
                border = self._buffer.find(self._beginning, start, end) if start < end else -1
                stop = end if border < 0 else border
                try:
                    pieces.append(decode(self._resource_type, view[start : stop + 1]))
                except MalformedObjectError:
                    return False
                start = stop + 2
        del self._buffer[: end + 2]
        self._taken += len(pieces)
        self._items.extend(pieces)
        return True

    def _decode(self, raws: list[msgspec.Raw]) -> None:
        items, unreadable = decode_items(
            self._resource_type, raws, first_index=self._taken, drop_managed_fields=self._drops
        )
        self._taken += len(raws)
        self._items.extend(items)
        self._unreadable.extend(unreadable)
