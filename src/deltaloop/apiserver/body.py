"""Reads the body of a request: at most 3 MiB, JSON, YAML or protobuf."""

from __future__ import annotations

import asyncio
from typing import Final, cast

import msgspec
from aiohttp import web

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.builtin_tables import builtin_types
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.wire import protobuf
from deltaloop.apiserver.core.wire.incoming import FREE, Lease
from deltaloop.apiserver.large_writes import beside
from deltaloop.schemas.nesting import check_depth, decode_json

# Of a request in YAML: a sentence for each key that comes twice.
REPEATED: Final = web.RequestKey("repeated", tuple[str, ...])
# Of a request: the account of the bytes of its body.
LEASE: Final[web.RequestKey[Lease]] = web.RequestKey("lease", Lease)
# Seconds in which a body has to arrive.
_PATIENCE: Final = 60.0
_JSON: Final = ("", "application/json")
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")


async def read_body(request: web.BaseRequest) -> bytes:
    """Read all of a body; a client that waits to be asked for it (``Expect: 100-continue``) is asked.

    Raises:
        RequestEntityTooLargeError: If it is larger than 3 MiB; what is over is not kept.
        TooManyRequestsError: If all bodies together are too large.
        ApiError: 504 if it does not arrive.
    """
    if (request.content_length or 0) > failures.MAX_BODY:
        raise failures.body_too_large()
    if request.headers.get("Expect", "").lower() == "100-continue" and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # as in the library's own: the answer has not begun
    if request.content.is_eof():
        return await _received(request)
    # Most bodies are there at once, so this has to cost little.
    alarm = asyncio.get_running_loop().call_later(_PATIENCE, request.content.set_exception, TimeoutError())
    try:
        return await _received(request)
    except TimeoutError:
        raise failures.body_timed_out() from None
    finally:
        alarm.cancel()


async def _received(request: web.BaseRequest) -> bytes:
    body, size = bytearray(), 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > FREE:
            if size > failures.MAX_BODY:
                raise failures.body_too_large()
            lease = request.get(LEASE)
            if lease is not None and not lease.grow(size):
                raise failures.too_many_bodies()
        body += part
    return bytes(body)


async def read_fields(
    request: web.BaseRequest, *, body: bytes | None = None, protobuf_kind: tuple[str, str] | None = None
) -> dict[str, object]:
    """Read an object, a large one in a thread; otherwise as ``decode_fields``.

    Args:
        request: The request; its content type says how to read the body.
        body: The body, if it has been read.
        protobuf_kind: As for ``decode_fields``.

    Raises:
        RequestEntityTooLargeError: If it is larger than 3 MiB.
        ApiError: As ``decode_fields``.
    """
    _media_type(request, protobuf_kind)
    raw = body if body is not None else await read_body(request)
    # Python's YAML reader takes more than a second for 3 MiB, and the loop has others to serve.
    return await beside(len(raw), lambda: decode_fields(request, raw, protobuf_kind=protobuf_kind))


def decode_fields(
    request: web.BaseRequest, raw: bytes, *, protobuf_kind: tuple[str, str] | None = None
) -> dict[str, object]:
    """Decode an object.

    Args:
        request: The request; its content type says how to read the body.
        raw: The request's body, unpacked.
        protobuf_kind: API version and kind of an object that says neither, if protobuf is read here at all.

    Raises:
        UnsupportedMediaTypeError: If it is in another format.
        BadRequestError: If it cannot be read, or is no object; the message has the place, not the data.
    """
    media_type = _media_type(request, protobuf_kind)
    try:
        if media_type == protobuf.CONTENT_TYPE and protobuf_kind is not None:
            api_version, kind = protobuf_kind
            fields = protobuf.decode_body(raw, builtin_types().body, api_version=api_version, kind=kind)
            check_depth(fields)
            return fields
        if media_type in _YAML:
            raw = _yaml_to_json(request, raw)
        value = decode_json(raw)
    except msgspec.MsgspecError as error:
        raise failures.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except (InvalidArgumentError, UnicodeDecodeError, TypeError) as error:
        raise failures.bad_request(f"error converting YAML to JSON: {error}") from None
    except RecursionError:
        raise failures.bad_request("the body of the request is nested too deeply") from None
    if not isinstance(value, dict):
        raise failures.bad_request("the body of the request is no object")
    return cast("dict[str, object]", value)


def _media_type(request: web.BaseRequest, protobuf_kind: tuple[str, str] | None) -> str:
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    in_protobuf = media_type == protobuf.CONTENT_TYPE and protobuf_kind is not None
    if media_type not in (*_JSON, *_YAML) and not in_protobuf:
        accepted = ("application/json", "application/yaml", protobuf.CONTENT_TYPE)
        raise failures.unsupported_media_type(accepted[: 2 if protobuf_kind is None else 3])
    return media_type


def _yaml_to_json(request: web.BaseRequest, body: bytes) -> bytes:
    """Return the first document; what is repeated in it is noted with the request."""
    from deltaloop.api.yaml_reader import read_yaml_body

    repeated: list[str] = []
    document = read_yaml_body(body, source="the body of the request", repeated=repeated)
    # As the real server's converter does; the first of several wrong fields is named.
    first = msgspec.json.encode(document, order="sorted")
    request[REPEATED] = tuple(repeated)
    return b"{}" if first == b"null" else first
