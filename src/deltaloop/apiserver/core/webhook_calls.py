"""Calls of webhooks: endpoint, request and response. ``webhook_client`` performs the I/O.

Source: apiserver pkg/util/webhook/client.go; client-go rest/request.go, apimachinery pkg/api/errors
(``NewGenericServerResponse``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.json_values import at, integer, is_mapping, text
from deltaloop.schemas.go_urls import Url, UrlError, parse_url
from deltaloop.schemas.nesting import MAX_STORED_DEPTH, TooDeepError, TooManyPartsError, check_depth, decode_json

MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_YAML: Final = 256 * 1024
# A review contains objects a few levels below its top.
_MOST_DEPTH: Final = MAX_STORED_DEPTH + 8
_PORT: Final = 443
_LAST_PORT: Final = 65535
_MOST_SHOWN: Final = 2048
_OK: Final = range(200, 207)
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_SECONDS: Final = re.compile(r"[+-]?[0-9]{1,19}")
_INT64: Final = 1 << 63
_NO_WORDS: Final = "the server responded with the status code {} but did not return more information"
_BY_CODE: Final[Mapping[int, str]] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_OWN_WORDS: Final = (403, 406, 415)

Failure: TypeAlias = Literal[
    "", "timeout", "refused", "closed", "cut off", "certificate", "unknown host", "not allowed", "too large", "too many"
]


class FailedCallError(DeltaloopError):
    """Failed call; the message is the real server's."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address of a webhook."""

    host: str
    port: int
    path: str
    service: tuple[str, str] | None
    authority: str = field(repr=False)
    fault: str = ""

    @property
    def shown(self) -> str:
        """URL of the endpoint. The port is omitted if the configured URL omits it."""
        port = "" if self.service is None and self.port == _PORT else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}{port}{self.path}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookCall:
    """Call of a webhook."""

    endpoint: Endpoint
    seconds: int
    kind: str
    api_version: str
    request: bytes = field(repr=False)
    turn: int = 0
    overdue: str = "context deadline exceeded"

    def body(self, uid: str) -> bytes:
        request = msgspec.Raw(b'{"uid":' + msgspec.json.encode(uid) + b"," + self.request[1:])
        return msgspec.json.encode({"kind": self.kind, "apiVersion": self.api_version, "request": request})


@final
@dataclass(frozen=True, slots=True)
class WebhookCalls:
    """Concurrent calls, whose answer is a tuple of ``Called``."""

    calls: tuple[WebhookCall, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """Result of a call."""

    uid: str
    status: int = 0
    content_type: str = ""
    body: bytes = field(default=b"", repr=False)
    failure: Failure = ""
    detail: str = ""
    lease: object = field(default=None, repr=False, compare=False)


def endpoint_of(client: object) -> Endpoint:
    authority = text(at(client, "caBundle"))
    service = at(client, "service")
    if is_mapping(service):
        namespace, name = text(service.get("namespace")), text(service.get("name"))
        return Endpoint(
            host=f"{name}.{namespace}.svc",
            port=integer(service.get("port")) or _PORT,
            path=_cleaned(text(service.get("path"))),
            service=(namespace, name),
            authority=authority,
        )
    return _at_url(text(at(client, "url")), authority)


def _at_url(written: str, authority: str) -> Endpoint:
    """Return the endpoint of a URL, which may be from a store with less validation."""
    fault, host, path, port = "", "", "/", _PORT
    try:
        url = parse_url(written)
    except UrlError as error:
        fault = f"Unparsable URL: {error}"
    else:
        host, path = url.hostname, _cleaned(url.path)
        if url.port:
            # Ten digits exceed every valid port and are short enough for a message.
            port = int(url.port[:10])
        if port > _LAST_PORT:
            fault = f"dial tcp: address {url.port[:_MOST_SHOWN]}: invalid port"
    return Endpoint(host=host, port=port, path=path, service=None, authority=authority, fault=fault)


def _cleaned(path: str) -> str:
    """Return an escaped path without empty segments and dots, like Go's ``path.Join``."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return Url(path="/" + "/".join(parts)).escaped_path


def wait_before_retry(status: int, retry_after: str) -> int | None:
    """Return the seconds before a requested retry, or None (client-go rest/with_retry.go, ``checkWait``)."""
    if status != _TOO_MANY and status < _SERVER_ERROR:
        return None
    if not _SECONDS.fullmatch(retry_after):
        return None
    seconds = int(retry_after)
    return max(seconds, 0) if -_INT64 <= seconds < _INT64 else None


def read_answer(call: WebhookCall, called: Called) -> object:
    """Return the decoded response, or raise FailedCallError."""
    if called.failure:
        raise FailedCallError(_why(call, called))
    fields = _decoded(called.body)
    if called.status not in _OK:
        if at(fields, "kind") == "Status" and at(fields, "status") != "Success":
            raise FailedCallError(text(at(fields, "message")))
        raise FailedCallError(_http_words(called))
    if not called.body:
        shown = called.content_type or "application/json"
        raise FailedCallError(f"0-length response with status code: {called.status} and content type: {shown}")
    fields = _any_form(called.body) if fields is None else fields
    try:
        check_depth(fields, most=_MOST_DEPTH)
    except TooDeepError as error:
        raise FailedCallError(f"couldn't get version/kind; json parse error: {error}") from None
    if not is_mapping(fields):
        given = f"json: cannot unmarshal {_GO_KINDS.get(type(fields), 'number')} into Go value of type {_HEAD}"
        raise FailedCallError(f"couldn't get version/kind; json parse error: {given}")
    return fields


def wrong_type(value: object, field: str, wanted: str) -> FailedCallError:
    """Return the error for a field of the wrong type, with Go's message."""
    kind = _GO_KINDS.get(type(value), "number")
    return FailedCallError(f"json: cannot unmarshal {kind} into Go struct field {field} of type {wanted}")


_HEAD: Final = (
    r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""
)
_GO_KINDS: Final[Mapping[type, str]] = {str: "string", bool: "bool", list: "array", dict: "object"}


def _any_form(body: bytes) -> object:
    """Decode a null or YAML response. A real server also reads YAML regardless of the content type."""
    nothing: dict[str, object] = {}
    if body.strip() == b"null":
        return nothing
    if len(body) > _MOST_YAML:
        given = f"this server reads at most {_MOST_YAML} bytes of YAML, got {len(body)}"
        raise FailedCallError(f"couldn't get version/kind; json parse error: {given}")
    from deltaloop.api.yaml_reader import read_yaml_documents  # most responses are JSON

    try:
        return next(read_yaml_documents(body, source="the answer"), nothing)
    except InvalidArgumentError as error:
        raise FailedCallError(f"couldn't get version/kind; json parse error: {error}") from None


def _decoded(body: bytes) -> object:
    try:
        return decode_json(body)
    except TooManyPartsError as error:
        raise FailedCallError(f"couldn't get version/kind; json parse error: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _why(call: WebhookCall, called: Called) -> str:
    shown = f'Post "{call.endpoint.shown}?timeout={call.seconds}s"'
    match called.failure:
        case "timeout":
            return f"{shown}: {call.overdue}"
        case "refused":
            return f"{shown}: dial tcp {called.detail}: connect: connection refused"
        case "closed":
            return f"{shown}: EOF"
        case "cut off":
            return "unexpected error when reading response body. Please retry. Original error: unexpected EOF"
        case "certificate":
            return f"{shown}: tls: failed to verify certificate: x509: {called.detail}"
        case "unknown host":
            return f"{shown}: dial tcp: lookup {called.detail}: no such host"
        case "too large":
            return f"{shown}: the answer has more than {MOST_BYTES} bytes"
        case "too many":
            return f"{shown}: answers of webhooks and bodies of requests are too large together"
        case _:
            return f"{shown}: {called.detail}"


def _http_words(called: Called) -> str:
    is_text = called.content_type.partition("/")[0] in ("", "text")
    shown = called.body[:_MOST_SHOWN].decode(errors="replace").strip() if is_text else "unknown"
    if called.status in _OWN_WORDS:
        return shown
    if called.status in _BY_CODE:
        return _BY_CODE[called.status]
    if called.status >= _SERVER_ERROR:
        quoted = json.dumps(shown, ensure_ascii=False)
        return f"an error on the server ({quoted}) has prevented the request from succeeding"
    return _NO_WORDS.format(called.status)
