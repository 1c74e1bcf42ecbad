"""What certificates are made of: keys, signatures, and how they come into an ``ssl.SSLContext``. No core.

Keys are ECDSA P-256. A replica's key is made in its memory and leaves it only into OpenSSL, which takes it from a file:
one in memory where the system has such files, else one that nobody else can read and that is gone at once.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltaloop.api.dns_names import subdomain_problems
from deltaloop.api.errors import InvalidArgumentError, MissingExtraError
from deltaloop.api.redaction import SecretText
from deltaloop.api.times import from_epoch
from deltaloop.webhooks.core.certificates.authorities import Authority, Certificate
from deltaloop.webhooks.core.certificates.rotation import MakeAuthority, Serving

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

_LONGEST_COMMON_NAME: Final = 64


def require_cryptography() -> None:
    """Check that certificates can be made here.

    Raises:
        MissingExtraError: If the extra ``webhooks`` is not installed.
    """
    try:
        import cryptography.x509  # noqa: F401  # pyright: ignore[reportUnusedImport] - to see whether it is there
    except ImportError:
        raise MissingExtraError("certificates of webhooks", "webhooks") from None


def make_authority(effect: MakeAuthority, *, name: str, serving_lifetime: float) -> Authority:
    """Make an authority that signs itself.

    Args:
        effect: From when to when it is valid.
        name: Its common name, cut after 64 characters.
        serving_lifetime: How many seconds certificates of it are valid.
    """
    from cryptography import x509

    key = _new_key()
    subject = _name(name)
    builder = _builder(subject, subject, key.public_key(), effect.not_before, effect.not_after)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    builder = builder.add_extension(_key_usage(signs=True), critical=True)
    return Authority(
        certificate=read_certificate(_signed(builder, key)),
        key=SecretText(_key_pem(key)),
        serving_lifetime=serving_lifetime,
    )


def read_authority(certificate: str, key: str) -> tuple[Certificate, SecretText]:
    """Read an authority's certificate and key.

    Args:
        certificate: In PEM.
        key: In PEM, not encrypted.

    Raises:
        ValueError: If one of them is none, the certificate may sign none, or they do not belong together.
    """
    from cryptography import x509

    with _unreadable():
        found = x509.load_pem_x509_certificate(certificate.encode())
        if _load_key(key).public_key() != found.public_key():
            raise ValueError("the key is not that of the certificate")
        if not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            raise ValueError("the certificate is not an authority's")
    return read_certificate(certificate), SecretText(key)


def read_certificate(pem: str) -> Certificate:
    """Read a certificate.

    Raises:
        ValueError: If it is none.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization

    with _unreadable():
        found = x509.load_pem_x509_certificate(pem.encode())
    fingerprint = hashlib.sha256(found.public_bytes(serialization.Encoding.DER)).hexdigest()
    return Certificate(
        fingerprint=fingerprint,
        pem=found.public_bytes(serialization.Encoding.PEM).decode(),
        not_before=found.not_valid_before_utc.timestamp(),
        not_after=found.not_valid_after_utc.timestamp(),
    )


def issue(authority: Authority, serving: Serving, hosts: Sequence[str]) -> SecretText:
    """Make a key and a certificate of it for a server; both in one text in PEM, the key first.

    Args:
        authority: Who signs.
        serving: From when to when it is valid.
        hosts: DNS names and addresses that it is for.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    signer = _load_key(authority.key.reveal())
    issuer = x509.load_pem_x509_certificate(authority.certificate.pem.encode())
    key = _new_key()
    builder = _builder(_name(hosts[0]), issuer.subject, key.public_key(), serving.not_before, serving.not_after)
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = builder.add_extension(identifier, critical=False)
    return SecretText(_key_pem(key) + _signed(builder, signer))


def check_hosts(hosts: Sequence[str]) -> None:
    """Refuse names that a certificate cannot be for.

    Raises:
        InvalidArgumentError: If there is none, or one is neither a DNS name nor an address.
    """
    if not hosts:
        raise InvalidArgumentError("a certificate needs a host: the DNS name of a Service, or an address")
    for host in hosts:
        if not _is_address(host) and subdomain_problems(host):
            raise InvalidArgumentError(f"{host!r} is neither a DNS name in small letters nor an address")


def server_context() -> ssl.SSLContext:
    """Make a context for a server; it has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_into(context: ssl.SSLContext, pem: SecretText) -> None:
    """Have a context serve this key and certificate from the next handshake on; open connections stay.

    Raises:
        ssl.SSLError: If they do not belong together, or are none.
    """
    with _file(pem.reveal().encode()) as path:
        context.load_cert_chain(path)


@contextmanager
def _file(content: bytes) -> Generator[str]:
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("deltaloop")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="deltaloop-") as directory:
        path = Path(directory) / "serving.pem"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield str(path)


@contextmanager
def _unreadable() -> Generator[None]:
    """Make a ValueError of whatever the library says of a certificate or a key that it does not take."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield
    except (
        TypeError,  # a key that is encrypted
        UnsupportedAlgorithm,
        x509.DuplicateExtension,
        x509.ExtensionNotFound,
        x509.InvalidVersion,
        x509.UnsupportedGeneralNameType,
    ) as error:
        raise ValueError(f"it cannot be used: {type(error).__name__}") from None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    return x509.IPAddress(ipaddress.ip_address(host)) if _is_address(host) else x509.DNSName(host)


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _load_key(pem: str) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("the key is neither one for ECDSA nor one for RSA")  # noqa: TRY004 - what was read is wrong
    return key


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives import serialization

    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def _name(common_name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_LONGEST_COMMON_NAME])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, not_before: float, not_after: float
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_whole_seconds(not_before))
        .not_valid_after(_whole_seconds(not_after))
    )


def _whole_seconds(instant: float) -> datetime:
    return from_epoch(float(int(instant)))


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    from cryptography.hazmat.primitives import hashes, serialization

    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


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
