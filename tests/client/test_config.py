from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop.api.redaction import SecretText
from deltaloop.client import ClientConfig, ConfigError, Headers, TlsConfig
from deltaloop.client.config import default_user_agent


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
def test_a_time_limit_that_is_none(timeout: float) -> None:
    with pytest.raises(ValueError, match="request_timeout"):
        ClientConfig(server="https://h", request_timeout=timeout)


def test_an_empty_namespace() -> None:
    with pytest.raises(ConfigError, match="namespace is empty"):
        ClientConfig(server="https://h", namespace="")


def test_the_repr_has_no_secret_and_no_certificate() -> None:
    tls = TlsConfig(
        ca_data=b"planted-ca",
        client_certificate_data=b"planted-certificate",
        client_key_data=SecretText("planted-key"),
    )
    config = ClientConfig(server="https://h", tls=tls, proxy_url="http://me:planted@p:1")
    assert "planted" not in repr(config)
    assert "planted" not in str(config)


def test_both_halves_of_a_client_certificate_are_needed() -> None:
    with pytest.raises(ConfigError, match="without a client key"):
        TlsConfig(client_certificate_file=Path("x"))
    with pytest.raises(ConfigError, match="without a client certificate"):
        TlsConfig(client_key_file=Path("x"))


def test_headers() -> None:
    headers = Headers([("Content-Type", "a"), ("warning", "1"), ("Warning", "2"), ("Set-Cookie", "planted")])
    assert headers.get("content-TYPE") == "a"
    assert headers.get("missing") == ""
    assert headers.get_all("WARNING") == ["1", "2"]
    assert repr(headers) == "<Headers content-type, warning, set-cookie>"
