"""Reader of request bodies of at most 3 MiB."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from deltaloop.apiserver.builtin_tables import builtin_types
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.wire.bodies import SentBody
from deltaloop.apiserver.core.wire.incoming import FREE, Lease
from deltaloop.apiserver.large_writes import beside

# Request key for the memory account of the body.
LEASE: Final[web.RequestKey[Lease]] = web.RequestKey("lease", Lease)
# Time limit in seconds for the arrival of a body.
_PATIENCE: Final = 60.0


async def read_body(request: web.BaseRequest) -> bytes:
    """Read a complete body of at most 3 MiB, and send 100 Continue if the client expects it."""
    if (request.content_length or 0) > status_errors.MAX_BODY:
        raise status_errors.body_too_large()
    if request.headers.get("Expect", "").lower() == "100-continue" and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # like in aiohttp: the response has not started
    if request.content.is_eof():
        return await _received(request)
    # Most bodies have already arrived, so this path must be cheap.
    alarm = asyncio.get_running_loop().call_later(_PATIENCE, request.content.set_exception, TimeoutError())
    try:
        return await _received(request)
    except TimeoutError:
        raise status_errors.body_timed_out() from None
    finally:
        alarm.cancel()


async def _received(request: web.BaseRequest) -> bytes:
    body, size = bytearray(), 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > FREE:
            if size > status_errors.MAX_BODY:
                raise status_errors.body_too_large()
            lease = request.get(LEASE)
            if lease is not None and not lease.grow(size):
                raise status_errors.too_many_bodies()
        body += part
    return bytes(body)


async def read_fields(
    request: web.BaseRequest, *, body: bytes | None = None, protobuf_kind: tuple[str, str] | None = None
) -> dict[str, object]:
    """Read an object, in a thread if it is large; raises ApiError if the body cannot be decoded."""
    sent_body(request, b"", protobuf_kind=protobuf_kind).checked_media_type()
    raw = body if body is not None else await read_body(request)
    # Python's YAML parser needs more than a second for 3 MiB, which would block the event loop.
    return await beside(len(raw), sent_body(request, raw, protobuf_kind=protobuf_kind).decode)


def sent_body(request: web.BaseRequest, raw: bytes, *, protobuf_kind: tuple[str, str] | None = None) -> SentBody:
    """Return a body with its content type."""
    content_type = request.headers.get("Content-Type", "")
    if protobuf_kind is None:
        return SentBody(raw=raw, content_type=content_type)
    api_version, kind = protobuf_kind
    return SentBody(
        raw=raw, content_type=content_type, type_of=builtin_types().body, api_version=api_version, kind=kind
    )
