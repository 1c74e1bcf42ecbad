from __future__ import annotations

import logging
import ssl
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from deltaloop.api.redaction import SecretText
from deltaloop.client import ClientConfig, ConfigError, TlsConfig
from deltaloop.client.tls import make_ssl_context
from tests.client.authority import Authority

pytestmark = pytest.mark.usefixtures("temporary_files")


def context(**tls: Any) -> ssl.SSLContext:
    return make_ssl_context(ClientConfig(server="https://h", tls=TlsConfig(**tls), source="the test"))


def test_only_the_given_ca_is_trusted(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "ca"
    path.write_bytes("# Prüfstelle\n".encode() + authority.pem)
    for made in (context(ca_data=authority.pem), context(ca_file=path)):
        assert len(made.get_ca_certs()) == 1
        assert made.verify_mode is ssl.CERT_REQUIRED
        assert made.check_hostname
        assert made.minimum_version is ssl.TLSVersion.TLSv1_2


def test_not_checking_is_said_aloud(caplog: pytest.LogCaptureFixture) -> None:
    made = context(insecure_skip_verify=True)
    assert made.verify_mode is ssl.CERT_NONE
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "not checked" in record.getMessage()


def test_key_data_is_in_a_private_file_for_a_moment(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, temporary_files: Path
) -> None:
    seen: list[tuple[int, int]] = []
    load = ssl.SSLContext.load_cert_chain

    def spying(self: ssl.SSLContext, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        path = Path(certfile)
        assert temporary_files in path.parents
        seen.append((stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)))
        load(self, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spying)
    context(
        client_certificate_data=authority.client_certificate,
        client_key_data=SecretText(authority.client_key.decode()),
    )
    assert seen == [(0o600, 0o700)]


def test_files_and_data_may_be_mixed(authority: Authority, tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    certificate.write_bytes(authority.client_certificate)
    key.write_bytes(authority.client_key)
    context(client_certificate_file=certificate, client_key_file=key)
    context(client_certificate_data=authority.client_certificate, client_key_file=key)
    context(client_certificate_file=certificate, client_key_data=SecretText(authority.client_key.decode()))


@pytest.mark.parametrize(
    "data", [b"", b"planted", b"-----BEGIN CERTIFICATE-----\nplanted\n-----END CERTIFICATE-----\n"]
)
def test_a_ca_that_is_none(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"the test: certificate-authority-data holds no PEM certificate") as caught:
        context(ca_data=data)
    assert "planted" not in str(caught.value)


def test_a_key_that_is_none(authority: Authority) -> None:
    with pytest.raises(ConfigError, match="the client certificate and key cannot be used") as caught:
        context(client_certificate_data=authority.client_certificate, client_key_data=SecretText("planted"))
    assert "planted" not in str(caught.value)


def test_a_key_of_another_certificate(authority: Authority, tmp_path: Path) -> None:
    import trustme

    other = Authority(trustme.CA())
    with pytest.raises(ConfigError, match="key values mismatch"):
        context(
            client_certificate_data=authority.client_certificate,
            client_key_data=SecretText(other.client_key.decode()),
        )
    with pytest.raises(ConfigError, match="cannot be used: no such file"):
        context(client_certificate_file=tmp_path / "gone", client_key_file=tmp_path / "gone")
    with pytest.raises(ConfigError, match="gone cannot be read"):
        context(ca_file=tmp_path / "gone")


def test_an_encrypted_key_asks_nobody(authority: Authority, tmp_path: Path) -> None:
    key = load_pem_private_key(authority.client_key, None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
    with pytest.raises(ConfigError, match="the client key is encrypted"):
        context(client_certificate_data=authority.client_certificate, client_key_data=SecretText(encrypted.decode()))
    (tmp_path / "key").write_bytes(encrypted)
    (tmp_path / "crt").write_bytes(authority.client_certificate)
    with pytest.raises(ConfigError, match="the client key is encrypted"):
        context(client_certificate_file=tmp_path / "crt", client_key_file=tmp_path / "key")


def test_temporary_files_go_where_the_fixture_says(temporary_files: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        assert Path(directory).parent == temporary_files
