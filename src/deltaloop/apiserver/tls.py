"""TLS for a local server: certificate authority, server certificate and client certificates.

Validity depends on the system clock, because verification does. Only the CA's key is stored, in a data directory.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, cast, final

from deltaloop._internal import x509_certificates
from deltaloop._internal.x509_certificates import certificate_pem, key_pem, load_chain, name_of
from deltaloop.api.errors import MissingExtraError
from deltaloop.apiserver.core.user import User
from deltaloop.apiserver.core.wire.request_info import authenticated

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_VALID: Final = timedelta(days=365)
_SKEW: Final = timedelta(hours=1)
_NAME: Final = "deltaloop embedded API server"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """Client certificate for a user, and its key.

    Attributes:
        certificate_pem: Certificate in PEM.
        key_pem: Private key in PEM.
    """

    certificate_pem: bytes
    key_pem: bytes

    def __repr__(self) -> str:
        return "<IssuedCertificate>"


@final
class CertificateAuthority:
    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    def __repr__(self) -> str:
        return "<CertificateAuthority>"

    @classmethod
    def make(cls) -> CertificateAuthority:
        """Create a new authority, or raise MissingExtraError without the extra ``server``."""
        key, start = new_key(), datetime.now(UTC) - _SKEW
        certificate = x509_certificates.sign_authority(
            key, name=f"{_NAME} CA", not_before=start, not_after=start + _VALID
        )
        return cls(key, certificate)

    @classmethod
    def load(cls, pem: bytes) -> CertificateAuthority:
        """Read an authority that ``to_pem`` wrote."""
        key = load_key(pem)
        from cryptography import x509

        certificate = x509.load_pem_x509_certificate(pem)
        if certificate.not_valid_after_utc - datetime.now(UTC) < _SKEW:
            raise ValueError("the CA certificate has expired")
        return cls(key, certificate)

    @property
    def ca_pem(self) -> bytes:
        return certificate_pem(self._certificate)

    def to_pem(self) -> bytes:
        """Return key and certificate. With the key, all users can be impersonated."""
        return key_pem(self._key) + self.ca_pem

    def server_context(self, *, host: str) -> ssl.SSLContext:
        """Return a TLS context for ``host`` and the loopback names; client certificates are optional."""
        key, start = new_key(), datetime.now(UTC) - _SKEW
        certificate = x509_certificates.sign_leaf(
            key,
            name_of(_NAME),
            issuer=self._certificate,
            signer=self._key,
            purpose="server",
            not_before=start,
            not_after=start + _VALID,
            hosts=_LOOPBACK if host in _LOOPBACK else (*_LOOPBACK, host),
        )
        context = x509_certificates.server_context()
        load_chain(context, key_pem(key) + certificate_pem(certificate))
        context.load_verify_locations(cadata=self.ca_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def issue(self, user: str, groups: tuple[str, ...] = ()) -> IssuedCertificate:
        """Issue a client certificate with the user as common name and the groups as organizations."""
        key, start = new_key(), datetime.now(UTC) - _SKEW
        certificate = x509_certificates.sign_leaf(
            key,
            name_of(user, groups),
            issuer=self._certificate,
            signer=self._key,
            purpose="client",
            not_before=start,
            not_after=start + _VALID,
        )
        return IssuedCertificate(certificate_pem(certificate), key_pem(key))


def user_of_certificate(certificate: Mapping[str, object]) -> User | None:
    """Return the user of a verified client certificate in the format of ``ssl``, or None without a common name."""
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get("subject", ()))
    parts = [part for relative in subject for part in relative]
    name = next((value for kind, value in parts if kind == "commonName"), "")
    if not name:
        return None
    return authenticated(name, *(value for kind, value in parts if kind == "organizationName"))


def new_key() -> ec.EllipticCurvePrivateKey:
    """Create a P-256 key, or raise MissingExtraError without the extra ``server``."""
    _require_cryptography()
    return x509_certificates.new_key()


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Read a key that ``key_pem`` wrote, or raise MissingExtraError without the extra ``server``, or ValueError."""
    _require_cryptography()
    from cryptography.hazmat.primitives.asymmetric import ec

    key = x509_certificates.load_key(pem)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key must belong to this server")  # noqa: TRY004 - the file is wrong, not the caller
    return key


def _require_cryptography() -> None:
    try:
        import cryptography.x509  # noqa: F401  # pyright: ignore[reportUnusedImport] - to see whether it is there
    except ImportError:
        raise MissingExtraError("TLS and tokens of service accounts in the embedded API server", "server") from None
