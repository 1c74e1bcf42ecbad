"""Upstream's cases: golang.org/x/net/http/httpproxy, proxy_test.go."""

from __future__ import annotations

import pytest

from deltaloop.client.core.proxy import proxy_for

PROXY = "http://proxy:3128"


def chosen(host: str, no_proxy: str = "", *, port: int = 443, **environ: str) -> str | None:
    return proxy_for("https", host, port, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy, **environ})


def test_without_variables_the_connection_is_direct() -> None:
    assert proxy_for("https", "api.example", 443, {}) is None
    assert proxy_for("https", "api.example", 443, {"HTTP_PROXY": PROXY}) is None


def test_proxy_variable_of_scheme_is_used() -> None:
    assert chosen("api.example") == PROXY
    assert proxy_for("https", "api.example", 443, {"https_proxy": "proxy:3128"}) == "http://proxy:3128"
    assert proxy_for("http", "api.example", 80, {"HTTP_PROXY": PROXY}) == PROXY
    assert proxy_for("http", "api.example", 80, {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}) is None


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]", "LOCALHOST"])
def test_loopback_is_always_direct(host: str) -> None:
    assert chosen(host) is None


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("api.example.com", "example.com", True),
        ("example.com", "example.com", True),
        ("notexample.com", "example.com", False),
        ("api.example.com", ".example.com", True),
        ("example.com", ".example.com", False),
        ("api.example.com", "*.example.com", True),
        ("API.Example.com.", "other, api.example.com", True),
        ("api.example.com", "api.example.com:443", True),
        ("api.example.com", "api.example.com:6443", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:6443", False),
        ("10.1.2.3", "1.2.3", False),
        ("fd00::1", "fd00::/8", True),
        ("fd00::1", "[fd00::1]:443", True),
        ("api.example.com", "10.0.0.0/8", False),
        ("api.example.com", "bad/network", False),
        ("10.1.2.3", "bad/network", False),
        ("api.example.com", "*", True),
        ("api.example.com", ",", False),
    ],
)
def test_no_proxy(host: str, no_proxy: str, direct: bool) -> None:
    assert (chosen(host, no_proxy) is None) is direct
