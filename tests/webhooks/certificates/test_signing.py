"""What certificates are made of, and what is read where somebody else has written."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop._internal.x509_certificates import load_chain, server_context
from deltaloop.api.redaction import SecretText
from deltaloop.webhooks.certificates import secret_form, signing
from deltaloop.webhooks.core.certificates.authorities import Authorities, Authority, FormerAuthority
from deltaloop.webhooks.core.certificates.rotation import MakeAuthority, Serving
from tests.nightly import examples
from tests.webhooks.certificates.test_own import peer_certificate

NOW = datetime(2026, 1, 2, tzinfo=UTC).timestamp()
DAY = 86400.0
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


def authority(name: str = "a") -> Authority:
    return signing.make_authority(MakeAuthority(NOW, NOW + 30 * DAY), name=name, serving_lifetime=DAY)


@cache
def held() -> Authorities:
    former = FormerAuthority(authority("c").certificate, NOW + DAY, dropped=True)
    return Authorities(authority(), authority("b"), (former,))


def own(key: Key, *, ca: bool = True) -> bytes:
    name = x509.Name([])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    start = datetime(2026, 1, 1, tzinfo=UTC)
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start + timedelta(days=9))
    builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM)


def pem(key: Key, password: bytes = b"") -> bytes:
    hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)


def test_secret_round_trip() -> None:
    wanted = held()
    assert secret_form.read_secret({"data": secret_form.to_data(wanted)}) == wanted


def test_existing_certificate_and_key_are_adopted() -> None:
    for key in (ec.generate_private_key(ec.SECP384R1()), rsa.generate_private_key(65537, 2048)):
        texts = {"tls.crt": own(key), "tls.key": pem(key)}
        data = {name: base64.b64encode(text).decode() for name, text in texts.items()}
        found = secret_form.read_secret({"data": data})
        assert found is not None
        assert (found.signer.published_at, found.successor, found.former) == (None, None, ())
        serving = Serving(found.signer.certificate, NOW, NOW + DAY, NOW)
        context = server_context()
        load_chain(context, signing.issue(found.signer, serving, ["a.svc", "127.0.0.1", "::1"]).reveal().encode())
        leaf = x509.load_der_x509_certificate(peer_certificate(context))
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert [str(each.value) for each in names] == ["a.svc", "127.0.0.1", "::1"]
        leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(own(key)))


def test_certificate_that_cannot_sign_is_not_adopted() -> None:
    key, other = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    for certificate, private in (
        (own(key, ca=False), pem(key)),
        (own(key), pem(ec.generate_private_key(ec.SECP256R1()))),
        (own(key), pem(key, b"hidden")),
        (own(other), pem(other)),
        (b"", pem(key)),
    ):
        with pytest.raises(ValueError):
            signing.read_authority(certificate.decode(), private.decode())


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_corrupted_secret_is_read_without_error(data: st.DataObject) -> None:
    texts = {name: base64.b64decode(text) for name, text in secret_form.to_data(held()).items()}
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(texts)))
        raw = bytearray(texts[name])
        kind = data.draw(st.integers(0, 2))
        if kind == 0 and raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        elif kind == 1:
            del raw[data.draw(st.integers(0, len(raw))) :]
        else:
            raw[:] = texts[data.draw(st.sampled_from(sorted(texts)))]
        texts[name] = bytes(raw)
    fields: dict[str, object] = {name: base64.b64encode(text).decode() for name, text in texts.items()}
    fields[data.draw(st.sampled_from(["more", *texts]))] = data.draw(st.none() | st.integers() | st.text(max_size=5))
    found = secret_form.read_secret({"data": fields})
    assert found is None or found.signer.key.reveal()


def test_temporary_key_file_is_removed_without_memfd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    context, signer = server_context(), authority()
    pem = signing.issue(signer, Serving(signer.certificate, NOW, NOW + DAY, NOW), ["a.svc"])
    load_chain(context, pem.reveal().encode())
    assert peer_certificate(context)
    assert [*tmp_path.iterdir()] == []
    assert isinstance(pem, SecretText)
    assert "PRIVATE" not in f"{pem!r} {signer!r}"
