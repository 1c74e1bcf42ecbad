"""Select the proxy for a server from environment variables, also in lower case.

In ``NO_PROXY``, a host name includes its subdomains, ``.name`` matches only subdomains, ``10.0.0.0/8`` a network, and
``*`` all hosts. Loopback addresses never use a proxy. ``ALL_PROXY`` is ignored.

Source: golang.org/x/net/http/httpproxy, which client-go uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network


def proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy, or None for a direct connection."""
    proxy = environ.get(proxy_variable(scheme, environ)) or ""
    # In a CGI program, HTTP_PROXY comes from the request's Proxy header (CVE-2016-5386).
    if not proxy or (scheme == "http" and "REQUEST_METHOD" in environ):
        return None
    host = host.strip("[]").lower().rstrip(".")
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return None
    excluded = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_matches(entry.strip().lower(), host, address, port) for entry in excluded.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_variable(scheme: str, environ: Mapping[str, str]) -> str:
    name = f"{scheme}_proxy"
    return name.upper() if environ.get(name.upper()) else name


def _matches(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    if not entry:
        return False
    if "/" in entry:
        return _in_network(entry, address)
    wanted, entry_port = _split_port(entry)
    if entry_port and entry_port != str(port):
        return False
    if address is not None:
        return _address(wanted) == address
    wanted = wanted.removeprefix("*")
    if wanted.startswith("."):
        return host.endswith(wanted)
    return host == wanted or host.endswith(f".{wanted}")


def _in_network(entry: str, address: IPv4Address | IPv6Address | None) -> bool:
    if address is None:
        return False
    try:
        return address in ip_network(entry, strict=False)
    except ValueError:
        return False


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        inside, _, rest = entry[1:].partition("]")
        return inside, rest.removeprefix(":")
    if entry.count(":") == 1:
        host, _, port = entry.partition(":")
        return host, port
    return entry, ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
