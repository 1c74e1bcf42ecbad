"""TLS for a server on this machine: a certificate authority, the server's certificate, and clients' on request.

Validity is counted from the system's clock, whatever clock the server writes into objects: the one who checks a
certificate looks at the system's clock, too. Keys stay in memory, except that a data directory keeps the authority's,
so that kubeconfigs outlive a restart; OpenSSL loads the server's from a file in a directory that nobody else can read,
which is gone at once.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast, final

from deltaloop.api.errors import MissingExtraError
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import authenticated

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_VALID: Final = timedelta(days=365)
_SKEW: Final = timedelta(hours=1)
_NAME: Final = "deltaloop embedded API server"


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate that names a user, and its key; both in PEM."""

    certificate_pem: bytes
    key_pem: bytes

    def __repr__(self) -> str:
        return "<IssuedCertificate>"


@final
class CertificateAuthority:
    """Signs the server's certificate and its clients'; whoever has a certificate of it is who the certificate says."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        """Use this key and its certificate; see ``make`` and ``load``."""
        self._key = key
        self._certificate = certificate

    def __repr__(self) -> str:
        return "<CertificateAuthority>"

    @classmethod
    def make(cls) -> CertificateAuthority:
        """Make a new authority.

        Raises:
            MissingExtraError: If the extra ``server`` is not installed.
        """
        key = new_key()
        from cryptography import x509

        name = _name({"COMMON_NAME": (f"{_NAME} CA",)})
        builder = _builder(name, name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(key, _signed(builder.add_extension(_usage(signs=True), critical=True), key))

    @classmethod
    def load(cls, pem: bytes) -> CertificateAuthority:
        """Read an authority that ``to_pem`` wrote.

        Raises:
            MissingExtraError: If the extra ``server`` is not installed.
            ValueError: If it is not one, or has less than an hour to live.
        """
        key = load_key(pem)
        from cryptography import x509

        certificate = x509.load_pem_x509_certificate(pem)
        if certificate.not_valid_after_utc - datetime.now(UTC) < _SKEW:
            raise ValueError("the certificate of the authority has expired")
        return cls(key, certificate)

    @property
    def ca_pem(self) -> bytes:
        """Its certificate, for kubeconfigs."""
        from cryptography.hazmat.primitives import serialization

        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def to_pem(self) -> bytes:
        """Return key and certificate; whoever has it can be anybody."""
        return key_pem(self._key) + self.ca_pem

    def server_context(self, *, host: str) -> ssl.SSLContext:
        """Make a certificate for ``host`` and this machine's loopback names; clients may show one of this authority.

        Args:
            host: An address, or a DNS name.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        with tempfile.TemporaryDirectory(prefix="deltaloop-") as directory:
            chain = Path(directory) / "server.pem"
            descriptor = os.open(chain, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._server_pem(host))
            context.load_cert_chain(chain)
        context.load_verify_locations(cadata=self.ca_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def issue(self, user: str, groups: tuple[str, ...] = ()) -> IssuedCertificate:
        """Make a client's certificate: its common name is the user, its organizations are the groups."""
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = new_key()
        name = _name({"COMMON_NAME": (user,), "ORGANIZATION_NAME": groups})
        builder = _builder(name, self._certificate.subject, key.public_key())
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        certificate = self._signed(builder)
        return IssuedCertificate(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))

    def _server_pem(self, host: str) -> bytes:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = new_key()
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
        ]
        if host not in ("localhost", "127.0.0.1", "::1"):
            names.append(_general_name(host))
        builder = _builder(_name({"COMMON_NAME": (_NAME,)}), self._certificate.subject, key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        return key_pem(key) + self._signed(builder).public_bytes(serialization.Encoding.PEM)

    def _signed(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        from cryptography import x509

        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        return _signed(builder.add_extension(authority, critical=False), self._key)


def user_of_certificate(certificate: Mapping[str, object]) -> User | None:
    """Return whom a checked client certificate names, as ``ssl`` shows it; None if it names nobody.

    Source: apiserver pkg/authentication/request/x509 (``CommonNameUserConversion``).
    """
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get("subject", ()))
    parts = [part for relative in subject for part in relative]
    name = next((value for kind, value in parts if kind == "commonName"), "")
    if not name:
        return None
    return authenticated(name, *(value for kind, value in parts if kind == "organizationName"))


def new_key() -> ec.EllipticCurvePrivateKey:
    """Make a key on the curve P-256.

    Raises:
        MissingExtraError: If the extra ``server`` is not installed.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise MissingExtraError("TLS and tokens of service accounts in the embedded API server", "server") from None
    return ec.generate_private_key(ec.SECP256R1())


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Read a key that ``key_pem`` wrote.

    Raises:
        MissingExtraError: If the extra ``server`` is not installed.
        ValueError: If it is not one.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise MissingExtraError("TLS and tokens of service accounts in the embedded API server", "server") from None
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key is not one of this server")  # noqa: TRY004 - the file is wrong, not the caller
    return key


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key in PEM, not encrypted."""
    from cryptography.hazmat.primitives import serialization

    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(parts: Mapping[str, tuple[str, ...]]) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name(
        [x509.NameAttribute(getattr(NameOID, kind), value) for kind, values in parts.items() for value in values]
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    from cryptography import x509

    start = datetime.now(UTC) - _SKEW
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + _VALID)
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    from cryptography.hazmat.primitives import hashes

    return builder.sign(key, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
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
