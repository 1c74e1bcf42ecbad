"""Which proxies are accepted, from the environment and from a kubeconfig."""

from __future__ import annotations

import pytest

from deltaloop.client import ClientConfig
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.errors import ConfigError
from tests.having import having
from tests.nightly import by_day

pytestmark = pytest.mark.usefixtures("no_proxy")


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


WRONG_PROXIES = [
    "http://[::nonsense",
    "http://127.0.0.1:port",
    "http://127.0.0.1:99999",
    "http://127.0.0.1:0",
    " http://127.0.0.1:1",
    "http://127.0.0.1:1 ",
    "http://127.0.0.1:1\n",
    "http://pro xy:1",
    " ",
    "http://",
    "http://me:planted@",
    "http://me:planted@host:port",
    "http://me:pla#nted@host:1",
    "planted://host:1",
    "socks5://me:planted@127.0.0.1:1",
    "ftp://127.0.0.1",
    "http://" + "h" * 64 + ":1",
]


VARIABLES = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "proxy-url"]


@pytest.mark.parametrize("variable", by_day(VARIABLES, ["http_proxy", "HTTP_PROXY", "proxy-url"]))
def test_proxy_that_cannot_be_used_is_a_config_error(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = "http://far.example" if variable.lower() == "http_proxy" else "https://far.example"
    for proxy in WRONG_PROXIES:
        if variable != "proxy-url":
            monkeypatch.setenv(variable, proxy)
        with pytest.raises(ConfigError, check=having(argument=variable)) as caught:
            HttpTransport(ClientConfig(server=server, proxy_url=proxy if variable == "proxy-url" else ""))
        assert "pla" not in str(caught.value)
        assert "nted" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "server"),
    [
        ({"HTTPS_PROXY": "ftp://x", "NO_PROXY": "far.example"}, "https://far.example"),
        ({"HTTPS_PROXY": "ftp://x"}, "https://127.0.0.1:1"),
        ({"HTTPS_PROXY": "ftp://x"}, "http://far.example"),
        ({"ALL_PROXY": "ftp://x"}, "https://far.example"),
        ({"HTTPS_PROXY": "", "https_proxy": ""}, "https://far.example"),
        ({"HTTPS_PROXY": "me:pw@proxy:3128"}, "https://far.example"),
    ],
)
def test_proxy_that_is_not_used_is_no_error(
    environ: dict[str, str], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    HttpTransport(ClientConfig(server=server))
