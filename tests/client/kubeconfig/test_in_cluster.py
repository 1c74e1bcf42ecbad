from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop.client import TokenFile, load_in_cluster
from deltaloop.client.core.credential import bearer
from deltaloop.client.kubeconfig.in_cluster import SERVICE_ACCOUNT, is_in_cluster
from deltaloop.errors import ConfigError
from tests.client.authority import Authority
from tests.having import having

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path: Path, authority: Authority) -> Path:
    (tmp_path / "token").write_text("planted-token\n")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "namespace").write_text("mine\n")
    return tmp_path


async def test_in_cluster_configuration_of_pod(service_account: Path) -> None:
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


def test_missing_namespace_file_means_default(service_account: Path) -> None:
    (service_account / "namespace").unlink()
    assert load_in_cluster(ENVIRON, service_account=service_account).namespace == "default"


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_missing_environment_variable_means_outside_cluster(service_account: Path, missing: str) -> None:
    environ = {name: value for name, value in ENVIRON.items() if name != missing}
    assert not is_in_cluster(environ, service_account=service_account)
    with pytest.raises(ConfigError, check=having(argument="KUBERNETES_SERVICE_HOST")):
        load_in_cluster(environ, service_account=service_account)


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_missing_file_of_service_account_raises_error(service_account: Path, missing: str) -> None:
    (service_account / missing).unlink()
    with pytest.raises(ConfigError, check=having(argument=str(service_account / missing))):
        load_in_cluster(ENVIRON, service_account=service_account)


def test_empty_token_of_service_account_raises_error(service_account: Path) -> None:
    assert is_in_cluster(ENVIRON, service_account=service_account)
    (service_account / "token").write_text("\n")
    with pytest.raises(ConfigError, check=having(argument=str(service_account / "token"))):
        load_in_cluster(ENVIRON, service_account=service_account)


def test_service_account_path_is_standard() -> None:
    assert Path("/var/run/secrets/kubernetes.io/serviceaccount") == SERVICE_ACCOUNT


def test_environment_of_process_is_default(service_account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRON:
        monkeypatch.delenv(name, raising=False)
    assert not is_in_cluster(service_account=service_account)
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    assert is_in_cluster(service_account=service_account)
    config = load_in_cluster(service_account=service_account)
    assert config.source == "in-cluster service account"
    assert (config.context, config.tls.insecure_skip_verify, config.is_tls) == ("", False, True)


@pytest.mark.parametrize("empty", ENVIRON)
def test_empty_environment_variable_is_missing(service_account: Path, empty: str) -> None:
    environ = {**ENVIRON, empty: ""}
    assert not is_in_cluster(environ, service_account=service_account)
    with pytest.raises(ConfigError, check=having(argument="KUBERNETES_SERVICE_HOST")):
        load_in_cluster(environ, service_account=service_account)


@pytest.mark.parametrize("there", [False, True])
def test_missing_token_means_outside_cluster(service_account: Path, there: bool) -> None:
    (service_account / "token").unlink()
    if there:
        (service_account / "token").mkdir()
    assert not is_in_cluster(ENVIRON, service_account=service_account)


def test_invalid_service_account_path_means_outside_cluster() -> None:
    assert not is_in_cluster(ENVIRON, service_account=Path("x" * 5000))


def test_unreadable_authority_is_missing(service_account: Path) -> None:
    (service_account / "ca.crt").unlink()
    (service_account / "ca.crt").symlink_to("x" * 300)
    with pytest.raises(ConfigError, check=having(argument=str(service_account / "ca.crt"))):
        load_in_cluster(ENVIRON, service_account=service_account)


def test_error_of_service_account_file_has_reason(service_account: Path) -> None:
    (service_account / "namespace").write_bytes(b"\xff")
    assert load_in_cluster(ENVIRON, service_account=service_account).namespace == "default"
    (service_account / "token").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"token .*UTF-8"):
        load_in_cluster(ENVIRON, service_account=service_account)
    (service_account / "token").unlink()
    with pytest.raises(ConfigError, match=r"token .*No such file"):
        load_in_cluster(ENVIRON, service_account=service_account)
