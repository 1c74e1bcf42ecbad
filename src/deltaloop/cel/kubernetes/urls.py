"""URLs: ``url("https://example.com/a?b=c").getHost()``.

Source: k8s.io/apiserver pkg/cel/library/urls.go.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

import msgspec

from deltaloop.cel.faults import EvaluationError, no_such_overload
from deltaloop.cel.library import Library, function, method
from deltaloop.cel.types import BOOL, STRING, Type, list_of, map_of, object_of
from deltaloop.schemas.go_urls import Url, UrlError, parse_request_url, parse_url

URL: Final = object_of("kubernetes.URL")


@final
class URLValue(msgspec.Struct, frozen=True, eq=False):
    cel_type: ClassVar[Type] = URL

    parts: Url

    def __str__(self) -> str:
        return str(self.parts)

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, URLValue):
            return str(self.parts) == str(other.parts)
        raise no_such_overload()


def _parsed(text: str) -> URLValue:
    try:
        parse_request_url(text)
        return URLValue(parse_url(text))
    except UrlError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_request_url(text)
    except UrlError:
        return False
    return True


URLS: Final = Library(
    "kubernetes.urls",
    {
        "url": (function("string_to_url", (STRING,), URL, _parsed),),
        "isURL": (function("is_url_string", (STRING,), BOOL, _is_url),),
        "getScheme": (method("url_get_scheme", (URL,), STRING, lambda url: url.parts.scheme),),
        "getHost": (method("url_get_host", (URL,), STRING, lambda url: url.parts.host),),
        "getHostname": (method("url_get_hostname", (URL,), STRING, lambda url: url.parts.hostname),),
        "getPort": (method("url_get_port", (URL,), STRING, lambda url: url.parts.port),),
        "getEscapedPath": (method("url_get_escaped_path", (URL,), STRING, lambda url: url.parts.escaped_path),),
        "getQuery": (method("url_get_query", (URL,), map_of(STRING, list_of(STRING)), lambda url: url.parts.query),),
    },
)
