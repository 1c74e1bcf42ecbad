"""X.509 certificates with P-256 keys for the servers of deltaloop. Requires the package ``cryptography``."""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    SigningKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def load_key(pem: bytes) -> SigningKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("the key must be an ECDSA or RSA key")  # noqa: TRY004 - wrong content, not a wrong type
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def certificate_pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)


def name_of(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    common = x509.NameAttribute(NameOID.COMMON_NAME, common_name)
    return x509.Name([common, *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations)])


def sign_authority(
    key: ec.EllipticCurvePrivateKey, *, name: str, not_before: datetime, not_after: datetime
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    subject = name_of(name)
    builder = _builder(subject, subject, key.public_key(), not_before, not_after)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.add_extension(_key_usage(signs=True), critical=True).sign(key, hashes.SHA256())


def sign_leaf(
    key: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    *,
    issuer: x509.Certificate,
    signer: SigningKey,
    purpose: Literal["server", "client"],
    not_before: datetime,
    not_after: datetime,
    hosts: Sequence[str] = (),
) -> x509.Certificate:
    """Return a certificate of a server (with DNS names and IP addresses) or a client."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID

    usage = ExtendedKeyUsageOID.SERVER_AUTH if purpose == "server" else ExtendedKeyUsageOID.CLIENT_AUTH
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = _builder(subject, issuer.subject, key.public_key(), not_before, not_after)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_general_name, hosts))), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return builder.add_extension(authority, critical=False).sign(signer, hashes.SHA256())


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def server_context() -> ssl.SSLContext:
    """Return a TLS context for an HTTP/1.1 server, without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a key and a certificate into a context, for new handshakes, or raise ssl.SSLError."""
    with _file(pem) as path:
        context.load_cert_chain(path)


@contextmanager
def _file(content: bytes) -> Generator[str]:
    """Write a file for OpenSSL, in memory if possible, otherwise readable only by this user."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("deltaloop")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="deltaloop-") as directory:
        path = Path(directory) / "chain.pem"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield str(path)


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    return x509.IPAddress(ipaddress.ip_address(host)) if is_address(host) else x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, not_before: datetime, not_after: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
