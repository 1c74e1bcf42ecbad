"""Response bodies in the requested form: object, Table or metadata only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final
from weakref import WeakValueDictionary

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import mapping
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.answers.table import (
    IncludeObject,
    Output,
    Shape,
    negotiate,
    parse_include_object,
    partial_list,
    partial_object,
    to_table,
)
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.storage.encoding import (
    bookmark,
    decode_object,
    encode_json,
    object_list,
    watch_line,
    whole_object,
)
from deltaloop.apiserver.core.storage.listing import Listed
from deltaloop.apiserver.core.storage.watching import Sighting
from deltaloop.apiserver.core.strategy import PLAIN
from deltaloop.apiserver.core.wire.media_types import YAML, parse_accept
from deltaloop.schemas.completing import struct_fields

_DECODED_AT_ONCE: Final = 250
_OFFERED: Final = ("application/json", YAML)
_STREAMED: Final = ("application/json;stream=watch",)


class Rendering(msgspec.Struct, frozen=True):
    served: ServedResource
    output: Output
    include: IncludeObject
    now: float

    def object(self, obj: Resource) -> bytes:
        obj = self.shown(obj)
        if self.output.form == "object":
            return whole_object(self.served, obj)
        fields = decode_object(self.served, obj)
        return encode_json(self.table([fields]) if self.output.form == "table" else partial_object(fields, self.output))

    def shown(self, obj: Resource) -> Resource:
        """Return the object without the fields that the client wants to drop."""
        return strip_managed_fields(obj) if self.output.drop_managed_fields else obj

    def list(self, listed: Listed) -> bytes:
        if self.output.form == "object":
            return object_list(self.served, map(self.shown, listed.items), listed.metadata)
        # Decoded objects need several times the memory of their JSON, so decode them in chunks.
        metadata = {name: value for name, value in listed.metadata.items() if name != "shardInfo"}
        items, default, row_order = listed.items, None, self.served.strategy.row_order
        if self.output.form == "table" and row_order is not None:
            items = tuple(sorted(items, key=lambda obj: row_order(self._decoded(obj))))
        if self.output.form == "table" and len(items) > _DECODED_AT_ONCE:
            default = (
                self.served.strategy.default_of(tuple(map(self._decoded, items)))
                if self.served.strategy.default_of is not PLAIN.default_of
                else ""
            )
        parts: list[bytes] = []
        whole = b""
        for start in range(0, len(items), _DECODED_AT_ONCE) or (0,):
            objects = map(self._decoded, items[start : start + _DECODED_AT_ONCE])
            if self.output.form == "table":
                page = self.table(objects, metadata=metadata, default=default)
                rows = page.pop("rows")
            else:
                page = partial_list(objects, metadata=metadata, output=self.output)
                rows = page.pop("items")
            whole = whole or encode_json(page)
            if rows:
                parts.append(encode_json(rows)[1:-1])
        name = b"rows" if self.output.form == "table" else b"items"
        return b"".join((whole[:-1], b',"', name, b'":[', b",".join(parts), b"]}"))

    def _decoded(self, obj: Resource) -> dict[str, Any]:
        return decode_object(self.served, self.shown(obj))

    def table(
        self,
        objects: Iterable[dict[str, Any]],
        *,
        metadata: dict[str, Any] | None = None,
        with_columns: bool = True,
        default: str | None = None,
    ) -> dict[str, Any]:
        return to_table(
            self.served,
            objects,
            now=self.now,
            output=self.output,
            metadata=metadata,
            include_object=self.include,
            with_columns=with_columns,
            default=default,
        )


def choose_rendering(
    served: ServedResource, *, accept: str, include_object: str, shape: Shape, now: float
) -> Rendering:
    """Choose the response form; ``now`` is in seconds since 1970."""
    output = negotiate(accept, shape=shape)
    if output is None:
        known = any(clause.is_yaml or clause.accepts_json for clause in parse_accept(accept))
        if known or not served.flags.protobuf:
            raise status_errors.not_servable(_STREAMED if shape == "watch" and YAML in accept else _OFFERED)
        raise status_errors.not_acceptable((*_OFFERED, *(_STREAMED if shape != "object" else ())))
    try:
        include = parse_include_object(include_object if output.form == "table" else "")
    except InvalidArgumentError as error:
        raise status_errors.bad_request(str(error)) from None
    return Rendering(served, output, include, now)


class WatchForm:
    """Form of one resource that several watches share, with the last encoded lines."""

    __slots__ = ("__weakref__", "lines", "sightings")

    def __init__(self) -> None:
        self.sightings: tuple[Sighting, ...] = ()
        self.lines: bytes = b""


@final
class LineCache:
    """Cache of encoded watch lines that several watches share; it drops the oldest lines.

    Revisions are not in the key, because ``RevisionStore.renumber`` can reuse them. Tables depend on their position in
    the stream, so they are not cached.
    """

    def __init__(self, *, size: int = 4 * 1024 * 1024) -> None:
        self._size = size
        self._kept = 0
        self._lines: dict[tuple[WatchForm, str, bytes], bytes] = {}
        self._forms: WeakValueDictionary[tuple[ServedResource, Output], WatchForm] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<LineCache {len(self._lines)} lines, {self._kept} bytes>"

    def form(self, rendering: Rendering) -> WatchForm:
        return self._forms.setdefault((rendering.served, rendering.output), WatchForm())

    def find(self, form: WatchForm, event_type: str, raw: bytes) -> bytes | None:
        return self._lines.get((form, event_type, raw))

    def keep(self, form: WatchForm, event_type: str, raw: bytes, line: bytes) -> None:
        self._lines[form, event_type, raw] = line
        self._kept += len(line)
        while self._kept > self._size:
            self._kept -= len(self._lines.pop(next(iter(self._lines))))


@final
class WatchRendering:
    """Encoder for one watch stream; only its first Table has column definitions."""

    def __init__(self, rendering: Rendering, cache: LineCache | None = None) -> None:
        """Use ``rendering``, and the lines in ``cache``. None creates a separate cache."""
        self._rendering = rendering
        self._columns_sent = False
        self._cache = cache or LineCache()
        self._form = self._cache.form(rendering)
        # Lines with ages depend on the time, so they cannot be shared.
        self.shows_ages: bool = rendering.output.form == "table"

    def lines(self, sightings: tuple[Sighting, ...], *, now: float, size: int) -> tuple[bytes, int]:
        """Encode about ``size`` bytes of the next events but at least one; return the lines and their number."""
        form = self._form
        if sightings and sightings is form.sightings:
            return form.lines, len(sightings)
        lines: list[bytes] = []
        written = 0
        for sighting in sightings:
            line = self.line(sighting, now=now)
            lines.append(line)
            written += len(line)
            if written >= size:
                break
        joined = b"".join(lines)
        if len(lines) == len(sightings) and not self.shows_ages:
            # Watches at the same position receive the identical tuple (``ChangeReader``).
            form.sightings, form.lines = sightings, joined
        return joined, len(lines)

    def line(self, sighting: Sighting, *, now: float) -> bytes:
        if sighting.status is not None:
            return watch_line("ERROR", sighting.status.to_json())
        event_type = sighting.type or EventType.BOOKMARK
        if sighting.object is None or self.shows_ages:
            return watch_line(event_type, encode_json(self._body(sighting, now)))
        raw = sighting.object.raw
        line = self._cache.find(self._form, event_type, raw)
        if line is None:
            whole = self._rendering.output.form == "object"
            body = self._rendering.object(sighting.object) if whole else encode_json(self._body(sighting, now))
            line = watch_line(event_type, body)
            self._cache.keep(self._form, event_type, raw, line)
        return line

    def _body(self, sighting: Sighting, now: float) -> dict[str, Any]:
        rendering = self._rendering
        if sighting.object is None:
            mark = bookmark(rendering.served, sighting.revision, ends_initial_events=sighting.ends_initial_events)
            mark |= {name: {} for name in struct_fields(rendering.served.schema.tree)}
            if rendering.output.form == "partial":
                return partial_object(mark, rendering.output)
            if rendering.output.form == "object":
                return mark
            return self._table([], now, metadata=mapping(mark["metadata"]))
        fields = decode_object(rendering.served, rendering.shown(sighting.object))
        if rendering.output.form == "partial":
            return partial_object(fields, rendering.output)
        return self._table([fields], now)

    def _table(
        self, objects: list[dict[str, Any]], now: float, *, metadata: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        rendering = msgspec.structs.replace(self._rendering, now=now)
        table = rendering.table(objects, metadata=metadata, with_columns=not self._columns_sent)
        self._columns_sent = True
        return table
