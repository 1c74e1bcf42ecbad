from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.client import ClientConfig, Headers, TlsConfig
from deltaloop.client.config import check_url, default_user_agent
from deltaloop.errors import ConfigError
from tests.having import having


def test_defaults() -> None:
    config = ClientConfig(server="https://h:6443")
    assert (config.namespace, config.request_timeout, config.is_tls) == ("default", 30.0, True)
    assert config.user_agent.startswith("deltaloop/")
    assert config.replace(namespace="x").namespace == "x"
    assert not ClientConfig(server="http://h").is_tls


def test_user_agent_names_version_and_system() -> None:
    own, system, python = default_user_agent().split(" ")
    assert own.startswith("deltaloop/0.")
    assert system.startswith("(")
    assert python.startswith("python/3.")


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_request_timeout_raises_error(timeout: float) -> None:
    with pytest.raises(ValueError, check=having(argument="ClientConfig.request_timeout")):
        ClientConfig(server="https://h", request_timeout=timeout)


def test_empty_namespace_raises_error() -> None:
    with pytest.raises(ConfigError, check=having(argument="ClientConfig.namespace")):
        ClientConfig(server="https://h", namespace="")


def test_repr_of_config_hides_secrets_and_certificates() -> None:
    tls = TlsConfig(
        ca_data=b"planted-ca",
        client_certificate_data=b"planted-certificate",
        client_key_data=SecretText("planted-key"),
    )
    config = ClientConfig(server="https://h", tls=tls, proxy_url="http://me:planted@p:1")
    assert "planted" not in repr(config)
    assert "planted" not in str(config)


def test_client_certificate_without_key_raises_error() -> None:
    with pytest.raises(ConfigError, check=having(argument="client-key[-data]")):
        TlsConfig(client_certificate_file=Path("x"))
    with pytest.raises(ConfigError, check=having(argument="client-certificate[-data]")):
        TlsConfig(client_key_file=Path("x"))


def test_headers() -> None:
    headers = Headers([("Content-Type", "a"), ("warning", "1"), ("Warning", "2"), ("Set-Cookie", "planted")])
    assert headers.get("content-TYPE") == "a"
    assert headers.get("missing") == ""
    assert headers.get_all("WARNING") == ["1", "2"]
    assert repr(headers) == "<Headers content-type, warning, set-cookie>"


@pytest.mark.parametrize("authority", [{"ca_data": b"x"}, {"ca_file": Path("x")}])
def test_authority_with_insecure_skip_verify_raises_error(authority: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, check=having(argument="insecure-skip-tls-verify")):
        TlsConfig(insecure_skip_verify=True, **authority)
    assert TlsConfig(insecure_skip_verify=True).insecure_skip_verify
    assert not TlsConfig(**authority).has_client_certificate


@pytest.mark.parametrize("certificate", [{"client_certificate_data": b"x"}, {"client_certificate_file": Path("x")}])
@pytest.mark.parametrize("key", [{"client_key_data": SecretText("x")}, {"client_key_file": Path("x")}])
def test_client_certificate_and_key_are_data_or_files(certificate: dict[str, Any], key: dict[str, Any]) -> None:
    assert TlsConfig(**certificate, **key).has_client_certificate
    with pytest.raises(ConfigError, check=having(argument="client-key[-data]")):
        TlsConfig(**certificate)
    with pytest.raises(ConfigError, check=having(argument="client-certificate[-data]")):
        TlsConfig(**key)


@pytest.mark.parametrize("field", ["request_timeout", "max_response_bytes", "max_event_bytes"])
def test_limits_of_nothing(field: str) -> None:
    wrong: Any = {field: 0}
    with pytest.raises(ValueError, check=having(argument=f"ClientConfig.{field}")):
        ClientConfig(server="https://h", **wrong)


@pytest.mark.parametrize(
    "server",
    [
        "https://h",
        "http://h:1",
        "https://10.0.0.1:6443",
        "https://[fd00::1]:6443",
        "https://a-b.c_d.e~f:65535/prefix",
        "https://münchen.example",
        "HTTPS://h",
    ],
)
def test_valid_server_addresses_are_accepted(server: str) -> None:
    assert ClientConfig(server=server).server == server


@pytest.mark.parametrize(
    "server",
    [
        "h:6443",
        "ftp://h",
        "https://",
        "https://h:0",
        "https://h?a=b",
        "https://h#a",
        "https://h h",
        " https://h",
        "https://" + "h" * 64,
        "https://h..example",
        "https://h!",
        "https://" + "ü" * 70,
        "https://-.\u2024",
        "https://h:99999",
        "https://[::1",
        "https://planted@h",
        "https://:planted@h",
    ],
)
def test_invalid_server_addresses_raise_error(server: str) -> None:
    with pytest.raises(ConfigError, check=having(argument="server")) as caught:
        ClientConfig(server=server)
    assert "planted" not in str(caught.value)
    with pytest.raises(ConfigError):
        ClientConfig(server="")


def test_proxy_url_with_user_is_accepted() -> None:
    assert ClientConfig(server="https://h", proxy_url="http://me:planted@p:1").proxy_url
    assert ClientConfig(server="https://h", proxy_url="https://p:1").proxy_url
    with pytest.raises(ConfigError, check=having(argument="proxy-url")):
        ClientConfig(server="https://h", proxy_url="socks5://p:1")


def test_check_url_accepts_only_given_schemes() -> None:
    check_url("https://h", "x", ("https",))
    with pytest.raises(ConfigError, check=having(argument="x")):
        check_url("http://h", "x", ("https",))


def test_default_user_agent_is_complete() -> None:
    system = f"({platform.system().lower()}/{platform.machine()})"
    python = f"python/{platform.python_version()}"
    assert default_user_agent() == f"deltaloop/{version('deltaloop')} {system} {python}"
    assert ClientConfig(server="https://h").user_agent == default_user_agent()
