from __future__ import annotations

import logging
import ssl
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from deltaloop.api.redaction import SecretText
from deltaloop.client import ClientCertificate, ClientConfig, TlsConfig
from deltaloop.client.transport.tls import TlsContexts, make_ssl_context
from deltaloop.errors import ConfigError
from tests.client.authority import Authority
from tests.client.fake_transport import logged
from tests.having import having

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


def _shakes_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    """Tell whether a client trusts a server, without a network."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    left = [
        client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while left:
        for side in tuple(left):
            try:
                side.do_handshake()
                left.remove(side)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError:
                return False
    return True


def test_server_certificate_can_be_its_own_authority(authority: Authority) -> None:
    server = authority.server_context()
    other = Authority(trustme.CA())
    other.server_context()
    trusted = {
        "the authority": authority.pem,
        "the server itself": authority.server_pem(),
        "another authority": other.pem,
        "another server": other.server_pem(),
    }
    found = {name for name, pem in trusted.items() if _shakes_hands(context(ca_data=pem), server)}
    assert found == {"the authority", "the server itself"}


def test_insecure_skip_verify_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = context(insecure_skip_verify=True)
    assert made.verify_mode is ssl.CERT_NONE
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "insecure-skip-tls-verify" in record.getMessage()


def test_key_data_is_written_to_private_temporary_file(
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


def test_certificate_file_and_key_data_can_be_mixed(authority: Authority, tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    certificate.write_bytes(authority.client_certificate)
    key.write_bytes(authority.client_key)
    context(client_certificate_file=certificate, client_key_file=key)
    context(client_certificate_data=authority.client_certificate, client_key_file=key)
    context(client_certificate_file=certificate, client_key_data=SecretText(authority.client_key.decode()))


@pytest.mark.parametrize(
    "data", [b"", b"planted", b"-----BEGIN CERTIFICATE-----\nplanted\n-----END CERTIFICATE-----\n"]
)
def test_invalid_ca_raises_error(data: bytes) -> None:
    with pytest.raises(ConfigError, check=having(argument="certificate-authority-data")) as caught:
        context(ca_data=data)
    assert "planted" not in str(caught.value)


def test_invalid_client_key_raises_error(authority: Authority) -> None:
    with pytest.raises(ConfigError, check=having(argument="client-certificate[-data]")) as caught:
        context(client_certificate_data=authority.client_certificate, client_key_data=SecretText("planted"))
    assert "planted" not in str(caught.value)


def test_key_of_other_certificate_raises_error(authority: Authority, tmp_path: Path) -> None:
    other = Authority(trustme.CA())
    with pytest.raises(ConfigError, check=having(argument="client-certificate[-data]")):
        context(
            client_certificate_data=authority.client_certificate,
            client_key_data=SecretText(other.client_key.decode()),
        )
    with pytest.raises(ConfigError, check=having(argument=str(tmp_path / "gone"))):
        context(client_certificate_file=tmp_path / "gone", client_key_file=tmp_path / "gone")
    with pytest.raises(ConfigError, check=having(argument=str(tmp_path / "gone"))):
        context(ca_file=tmp_path / "gone")


def test_encrypted_key_raises_error_without_prompt(authority: Authority, tmp_path: Path) -> None:
    key = load_pem_private_key(authority.client_key, None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
    with pytest.raises(ConfigError, check=having(argument="client-key[-data]")):
        context(client_certificate_data=authority.client_certificate, client_key_data=SecretText(encrypted.decode()))
    (tmp_path / "key").write_bytes(encrypted)
    (tmp_path / "crt").write_bytes(authority.client_certificate)
    with pytest.raises(ConfigError, check=having(argument="client-key[-data]")):
        context(client_certificate_file=tmp_path / "crt", client_key_file=tmp_path / "key")


def test_temporary_files_are_in_directory_of_fixture(temporary_files: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        assert Path(directory).parent == temporary_files


# Rotation


def contexts(**tls: Any) -> TlsContexts:
    return TlsContexts(ClientConfig(server="https://h", tls=TlsConfig(**tls), source="the test"))


def test_replaced_authority_is_loaded_within_minute(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "ca"
    path.write_bytes(authority.pem)
    source = contexts(ca_file=path)
    first = source.context(None, now=0.0)
    path.write_bytes(Authority(trustme.CA()).pem)
    assert source.context(None, now=59.0) is first
    second = source.context(None, now=60.0)
    assert second is not first
    assert second.get_ca_certs() != first.get_ca_certs()
    assert source.context(None, now=500.0) is second


def test_half_written_file_is_ignored(authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "ca"
    path.write_bytes(authority.pem)
    source = contexts(ca_file=path)
    first = source.context(None, now=0.0)
    path.write_bytes(b"planted")
    assert source.context(None, now=60.0) is first
    path.unlink()
    assert source.context(None, now=120.0) is first
    path.write_bytes(Authority(trustme.CA()).pem)
    assert source.reload(121.0)
    assert source.context(None, now=121.0) is not first
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["cannot use changed certificate files", "cannot read certificate file"]
    assert "planted" not in caplog.text


def test_without_files_no_file_is_checked(authority: Authority) -> None:
    source = contexts(ca_data=authority.pem)
    source.suspect()
    assert not source.reload(1e6)
    assert source.context(None, now=1e6) is source.context(None, now=0.0)


def test_plugin_certificate_has_one_context(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = 0
    load = ssl.SSLContext.load_cert_chain

    def counting(self: ssl.SSLContext, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        nonlocal loads
        loads += 1
        load(self, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", counting)
    first, second = (
        ClientCertificate(certificate=certificate, key=SecretText(key.decode()))
        for certificate, key in (authority.issue("a@example.org"), authority.issue("b@example.org"))
    )
    source = contexts(ca_data=authority.pem)
    made = [source.context(each, now=0.0) for each in (None, first, first, second, second)]
    assert made[1] is made[2]
    assert made[3] is made[4]
    assert len(set(map(id, made))) == 3
    assert loads == 2, "the key is written once for each certificate, not for each request"
    path = tmp_path / "ca"
    path.write_bytes(authority.pem)
    source = contexts(ca_file=path)
    made = [source.context(first, now=0.0)]
    path.write_bytes(Authority(trustme.CA()).pem)
    made.append(source.context(first, now=60.0))
    assert made[1] is not made[0]
    assert loads == 4, "the new context has the plugin's certificate, too"
    with pytest.raises(ConfigError, check=having(argument="client-certificate[-data]")):
        source.context(ClientCertificate(certificate=b"planted", key=SecretText("planted")), now=60.0)
    assert source.context(first, now=60.0) is made[1]


# What is said, and what is read


def test_insecure_server_is_named_in_log(caplog: pytest.LogCaptureFixture) -> None:
    made = context(insecure_skip_verify=True)
    assert not made.check_hostname
    assert made.minimum_version is ssl.TLSVersion.TLSv1_2
    (record,) = logged(caplog)
    assert record.__dict__["server"] == "https://h"


def test_system_authorities_are_default(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "system").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert context().get_ca_certs() == context(ca_data=authority.pem).get_ca_certs()
    assert context().verify_mode is ssl.CERT_REQUIRED
    assert len(context(ca_data=Authority(trustme.CA()).pem).get_ca_certs()) == 1


def test_tls_error_names_source_of_data(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(b"planted")
    with pytest.raises(ConfigError, check=having(argument=f"CA file {tmp_path / 'ca'}", where="the test")):
        context(ca_file=tmp_path / "ca")
    with pytest.raises(ConfigError, check=having(argument="certificate-authority-data")):
        make_ssl_context(ClientConfig(server="https://h", tls=TlsConfig(ca_data=b"x")))
    gone = tmp_path / "gone"
    with pytest.raises(ConfigError, check=having(argument=str(gone), where="the test")):
        context(ca_file=gone)
    for tls in (
        {"client_certificate_file": gone, "client_key_data": SecretText("planted")},
        {"client_certificate_data": authority.client_certificate, "client_key_file": gone},
    ):
        with pytest.raises(ConfigError, check=having(argument=str(gone), where="the test")):
            context(**tls)
    with pytest.raises(ConfigError, check=having(argument="client-certificate[-data]")):
        context(client_certificate_data=b"planted", client_key_data=SecretText("planted"))


def test_tls_data_overrides_files(authority: Authority, tmp_path: Path) -> None:
    other = Authority(trustme.CA())
    (tmp_path / "ca").write_bytes(other.pem)
    made = context(ca_data=authority.pem, ca_file=tmp_path / "ca")
    assert made.get_ca_certs() == context(ca_data=authority.pem).get_ca_certs()
    source = contexts(ca_data=authority.pem, ca_file=tmp_path / "ca")
    (tmp_path / "ca").write_bytes(authority.pem)
    assert not source.reload(1e6), "the file is not looked at"


def test_reloaded_tls_files_are_logged(authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.client")
    path = tmp_path / "ca"
    path.write_bytes(authority.pem)
    source = contexts(ca_file=path)
    path.write_bytes(b"planted")
    assert not source.reload(1.0)
    path.unlink()
    assert not source.reload(2.0)
    path.write_bytes(Authority(trustme.CA()).pem)
    assert source.reload(3.0)
    assert not source.reload(4.0), "nothing has changed"
    unusable, unreadable, read = logged(caplog)
    assert (unusable.levelname, unreadable.levelname, read.levelname) == ("WARNING", "WARNING", "INFO")
    assert "PEM certificate" in unusable.__dict__["reason"]
    assert (unreadable.__dict__["file"], unreadable.__dict__["reason"]) == (str(path), "No such file or directory")
    assert read.__dict__["files"] == [str(path)]


def test_suspected_change_reloads_files_before_next_request(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "ca"
    path.write_bytes(authority.pem)
    source = contexts(ca_file=path)
    first = source.context(None, now=0.0)
    path.write_bytes(Authority(trustme.CA()).pem)
    assert source.context(None, now=1.0) is first
    source.suspect()
    assert source.context(None, now=1.0) is not first


@pytest.mark.parametrize("which", ["ca", "crt", "key"])
def test_each_file_is_watched(which: str, authority: Authority, tmp_path: Path) -> None:
    for name, data in (("ca", authority.pem), ("crt", authority.client_certificate), ("key", authority.client_key)):
        (tmp_path / name).write_bytes(data)
    source = contexts(
        ca_file=tmp_path / "ca", client_certificate_file=tmp_path / "crt", client_key_file=tmp_path / "key"
    )
    assert not source.reload(1.0)
    (tmp_path / which).write_bytes((tmp_path / which).read_bytes() + b"\n")
    assert source.reload(2.0)
    assert not source.reload(3.0)


def test_bytes_moved_between_files_are_change(authority: Authority, tmp_path: Path) -> None:
    for name, data in (("crt", authority.client_certificate + b"\n"), ("key", authority.client_key)):
        (tmp_path / name).write_bytes(data)
    source = contexts(client_certificate_file=tmp_path / "crt", client_key_file=tmp_path / "key")
    (tmp_path / "crt").write_bytes(authority.client_certificate)
    (tmp_path / "key").write_bytes(b"\n" + authority.client_key)
    assert source.reload(1.0)


def test_plugin_certificate_replaces_certificate_files(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "crt").write_bytes(authority.client_certificate)
    (tmp_path / "key").write_bytes(authority.client_key)
    source = contexts(client_certificate_file=tmp_path / "crt", client_key_file=tmp_path / "key")
    own = source.context(None, now=0.0)
    certificate, key = authority.issue("a@example.org")
    given = ClientCertificate(certificate=certificate, key=SecretText(key.decode()))
    assert source.context(given, now=0.0) is not own
    assert source.context(given, now=0.0) is source.context(given, now=0.0)
    assert source.context(None, now=0.0) is not own, "the context of before is made again"
