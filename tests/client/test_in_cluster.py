from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop.client import ConfigError, TokenFile, load_in_cluster
from deltaloop.client.core.credential import bearer
from deltaloop.client.in_cluster import is_in_cluster
from tests.client.authority import Authority

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path: Path, authority: Authority) -> Path:
    (tmp_path / "token").write_text("planted-token\n")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "namespace").write_text("mine\n")
    return tmp_path


async def test_a_pod(service_account: Path) -> None:
    config = load_in_cluster(ENVIRON, service_account=service_account)
    assert (config.server, config.namespace) == ("https://10.0.0.1:443", "mine")
    assert config.tls.ca_file == service_account / "ca.crt"
    assert isinstance(config.credentials, TokenFile)
    assert await config.credentials.credential() == bearer("planted-token")
    assert "planted" not in repr(config)
    assert load_in_cluster(ENVIRON, namespace="other", service_account=service_account).namespace == "other"


def test_ipv6(service_account: Path) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert load_in_cluster(environ, service_account=service_account).server == "https://[fd00::1]:443"


def test_without_namespace_it_is_default(service_account: Path) -> None:
    (service_account / "namespace").unlink()
    assert load_in_cluster(ENVIRON, service_account=service_account).namespace == "default"


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_outside_of_a_pod(service_account: Path, missing: str) -> None:
    environ = {name: value for name, value in ENVIRON.items() if name != missing}
    assert not is_in_cluster(environ, service_account=service_account)
    with pytest.raises(ConfigError, match="not in a cluster: KUBERNETES_SERVICE_HOST and"):
        load_in_cluster(environ, service_account=service_account)


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_missing_file(service_account: Path, missing: str) -> None:
    (service_account / missing).unlink()
    with pytest.raises(ConfigError, match=missing):
        load_in_cluster(ENVIRON, service_account=service_account)


def test_an_empty_token(service_account: Path) -> None:
    assert is_in_cluster(ENVIRON, service_account=service_account)
    (service_account / "token").write_text("\n")
    with pytest.raises(ConfigError, match="token is empty"):
        load_in_cluster(ENVIRON, service_account=service_account)
