"""Reads the body of a request: at most 3 MiB, JSON or YAML."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec
from aiohttp import web

from deltaloop.api.errors import InvalidInputError
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.apiserver.core import failures

_JSON: Final = ("", "application/json")
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")


async def read_body(request: web.BaseRequest) -> bytes:
    """Read all of a body.

    Raises:
        RequestEntityTooLargeError: If it is larger than 3 MiB; what is over is not kept.
    """
    if (request.content_length or 0) > failures.MAX_BODY:
        raise failures.body_too_large()
    body = bytearray()
    async for part in request.content.iter_any():
        body += part
        if len(body) > failures.MAX_BODY:
            raise failures.body_too_large()
    return bytes(body)


async def read_fields(request: web.BaseRequest, *, body: bytes | None = None) -> dict[str, Any]:
    """Read an object.

    Args:
        request: The request; its content type says how to read the body.
        body: The body, if it has been read.

    Raises:
        UnsupportedMediaTypeError: If it is neither JSON nor YAML.
        BadRequestError: If it cannot be read, or is no object; the message has the place, not the data.
        RequestEntityTooLargeError: If it is larger than 3 MiB.
    """
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type not in (*_JSON, *_YAML):
        raise failures.unsupported_media_type(("application/json", "application/yaml"))
    raw = body if body is not None else await read_body(request)
    try:
        if media_type in _YAML:
            raw = msgspec.json.encode(read_yaml(raw, source="the body of the request"))
        value = msgspec.json.decode(raw)
    except msgspec.MsgspecError as error:
        raise failures.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    except (InvalidInputError, UnicodeDecodeError, TypeError) as error:
        raise failures.bad_request(f"error converting YAML to JSON: {error}") from None
    except RecursionError:
        raise failures.bad_request("the body of the request is nested too deeply") from None
    if not isinstance(value, dict):
        raise failures.bad_request("the body of the request is no object")
    return cast("dict[str, Any]", value)
