"""Parse and write URLs like Go's net/url, with its error messages.

Source: Go net/url/url.go.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.schemas.go_addresses import AddressError, parse_address
from deltaloop.schemas.go_numbers import quoted
from deltaloop.schemas.work import charge

_Mode: TypeAlias = Literal["path", "host", "zone", "user", "query", "fragment"]

_SCHEME: Final = re.compile("[a-zA-Z][a-zA-Z0-9+.-]*:")
_PORT: Final = re.compile("(:[0-9]*)?")
_ESCAPE: Final = re.compile("%[0-9a-fA-F]{2}")
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_HOST: Final = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
# Bytes that are not escaped in each part of a URL.
_PLAIN: Final[dict[_Mode, frozenset[int]]] = {
    "path": _UNRESERVED | frozenset(b"$&+,/:;=@"),
    "host": _HOST,
    "zone": _HOST,
    "user": _UNRESERVED | frozenset(b"$&+,;="),
    "query": _UNRESERVED,
    "fragment": _UNRESERVED | frozenset(b"$&+,/:;=?@!()*"),
}
_KEPT_IN_PATHS: Final = frozenset("!$&'()*+,;=:@[]%")
_IN_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_MOST_PARAMETERS: Final = 10_000


class UrlError(ValueError):
    """A string is not a URL. The message is Go's."""


@final
class Url(msgspec.Struct):
    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    omits_host: bool = False
    has_question_mark: bool = False
    raw_query: str = ""
    fragment: str = ""
    raw_fragment: str = ""

    @property
    def hostname(self) -> str:
        return self._host_and_port()[0]

    @property
    def port(self) -> str:
        return self._host_and_port()[1]

    @property
    def escaped_path(self) -> str:
        """Path as sent, which is the original path if its escapes are valid."""
        charge(20 * len(self.path))
        return _escaped_part(self.path, self.raw_path, "path")

    @property
    def query(self) -> dict[str, list[str]]:
        """Query parameters without invalid parameters."""
        charge(10 * len(self.raw_query))
        found: dict[str, list[str]] = {}
        if self.raw_query.count("&") + 1 > _MOST_PARAMETERS:
            return found
        for part in self.raw_query.split("&"):
            if part and ";" not in part:
                name, _, value = part.partition("=")
                try:
                    found.setdefault(_unescaped(name, "query"), []).append(_unescaped(value, "query"))
                except UrlError:
                    continue
        return {name: values for name, values in found.items() if values}

    def __str__(self) -> str:
        charge(20 * len(self.path) + 10 * len(self.host))
        scheme = f"{self.scheme}:" if self.scheme else ""
        tail = f"?{self.raw_query}" if self.has_question_mark or self.raw_query else ""
        if self.fragment:
            tail += f"#{_escaped_part(self.fragment, self.raw_fragment, 'fragment')}"
        if self.opaque:
            return f"{scheme}{self.opaque}{tail}"
        authority = ""
        if not (self.omits_host and not self.host and self.user is None) and (
            self.scheme or self.host or self.user is not None
        ):
            authority = "//" if self.host or self.path or self.user is not None else ""
            authority += f"{self.user}@" if self.user is not None else ""
            authority += _escape(self.host, "host")
        path = self.escaped_path
        if path and path[0] != "/" and self.host:
            path = f"/{path}"
        if not scheme and not authority and ":" in path.partition("/")[0]:
            path = f"./{path}"
        return f"{scheme}{authority}{path}{tail}"

    def _host_and_port(self) -> tuple[str, str]:
        host, port = self.host, ""
        head, colon, tail = host.rpartition(":")
        if colon and re.fullmatch("[0-9]*", tail):
            host, port = head, tail
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port


def parse_request_url(text: str) -> Url:
    """Parse an absolute URL or an absolute path. A fragment is not separated."""
    return _parsed(text, text, for_request=True)


def parse_url(text: str) -> Url:
    rest, _, fragment = text.partition("#")
    found = _parsed(rest, rest, for_request=False)
    if fragment:
        try:
            found.fragment = _unescaped(fragment, "fragment")
        except UrlError as error:
            raise _no_url(text, str(error)) from None
        found.raw_fragment = fragment if _escape(found.fragment, "fragment") != fragment else ""
    return found


def _no_url(text: str, why: str) -> UrlError:
    return UrlError(f"parse {quoted(text)}: {why}")


def _parsed(text: str, shown: str, *, for_request: bool) -> Url:
    charge(20 + 20 * len(text))
    try:
        return _parse(text, for_request=for_request)
    except UrlError as error:
        raise _no_url(shown, str(error)) from None


def _parse(text: str, *, for_request: bool) -> Url:
    if any(ord(sign) < 0x20 or sign == "\x7f" for sign in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and for_request:
        raise UrlError("empty url")
    if text == "*":
        return Url(path="*")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme = match[0][:-1].lower() if match else ""
    rest, mark, query = text[match.end() if match else 0 :].partition("?")
    url = Url(scheme, raw_query=query, has_question_mark=bool(mark) and not query)
    if not rest.startswith("/"):
        if scheme:
            url.opaque = rest
            return url
        if for_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or (not for_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        url.user, url.host = _authority(scheme, authority)
        rest = slash + path
    elif scheme and rest.startswith("/"):
        url.omits_host = True
    url.path = _unescaped(rest, "path")
    url.raw_path = rest if _escape(url.path, "path") != rest else ""
    return url


def _authority(scheme: str, authority: str) -> tuple[str | None, str]:
    user, at_sign, host = authority.rpartition("@")
    found = _host(scheme, host)
    if not at_sign:
        return None, found
    if not _IN_USER.fullmatch(user):
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    name, password = (_escape(_unescaped(part, "user"), "user") for part in (name, password))
    return f"{name}{colon}{password}", found


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _literal_address(host)
    colon = host.find(":")
    if colon >= 0:
        # Other schemes allow colons in a host, for old database addresses.
        port = host[colon if scheme in ("http", "https") else host.rfind(":") :]
        _check_port(port)
    return _unescaped(host, "host")


def _literal_address(host: str) -> str:
    closing = host.rfind("]")
    if closing < 0:
        raise UrlError("missing ']' in host")
    port = host[closing + 1 :]
    _check_port(port)
    name, zone = host[1:closing], ""
    at = name.find("%25")
    if at >= 0:
        name, zone = name[:at], _unescaped(name[at:], "zone")
    name = _unescaped(name, "host") + zone
    try:
        address, _ = parse_address(name)
    except AddressError as error:
        raise UrlError(f"invalid host: {error}") from None
    if address.version == 4:
        raise UrlError("invalid IP-literal")
    return f"[{name}]{port}"


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {quoted(port)} after host")


def _unescaped(text: str, mode: _Mode) -> str:
    at = 0
    while at < len(text):
        sign = text[at]
        if sign == "%":
            escape = text[at : at + 3]
            if not _ESCAPE.fullmatch(escape) or not _may_be_escaped(escape, mode):
                raise UrlError(f"invalid URL escape {quoted(escape)}")
            at += 3
            continue
        if mode in ("host", "zone") and sign.isascii() and ord(sign) not in _HOST:
            raise UrlError(f"invalid character {quoted(sign)} in host name")
        at += 1
    if mode == "query":
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    encoded = _ESCAPE.sub(lambda match: chr(int(match[0][1:], 16)), text.encode().decode("latin-1"))
    return encoded.encode("latin-1").decode("utf-8", "surrogateescape")


def _may_be_escaped(escape: str, mode: _Mode) -> bool:
    byte = int(escape[1:], 16)
    if mode == "host":
        return byte >= 0x80 or escape == "%25"
    return mode != "zone" or escape == "%25" or byte == 0x20 or byte in _HOST


def _escape(text: str, mode: _Mode) -> str:
    plain = _PLAIN[mode]
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def _escaped_part(part: str, raw: str, mode: _Mode) -> str:
    if raw and all(sign in _KEPT_IN_PATHS or (sign.isascii() and ord(sign) in _PLAIN[mode]) for sign in raw):
        return raw
    return "*" if part == "*" and mode == "path" else _escape(part, mode)
