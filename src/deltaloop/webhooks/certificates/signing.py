"""Create, sign and read the authorities and certificates of webhooks."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from deltaloop._internal.x509_certificates import (
    certificate_pem,
    is_address,
    key_pem,
    load_key,
    name_of,
    new_key,
    sign_authority,
    sign_leaf,
)
from deltaloop.api.dns_names import subdomain_problems
from deltaloop.api.errors import InvalidArgumentError, MissingExtraError
from deltaloop.api.redaction import SecretText
from deltaloop.api.times import from_epoch
from deltaloop.webhooks.core.certificates.authorities import Authority, Certificate
from deltaloop.webhooks.core.certificates.rotation import MakeAuthority, Serving

_LONGEST_COMMON_NAME: Final = 64


def require_cryptography() -> None:
    """Check that cryptography is installed, or raise MissingExtraError."""
    try:
        import cryptography.x509  # noqa: F401  # pyright: ignore[reportUnusedImport] - tests whether it is installed
    except ImportError:
        raise MissingExtraError("certificates of webhooks", "webhooks") from None


def make_authority(effect: MakeAuthority, *, name: str, serving_lifetime: float) -> Authority:
    """Create a self-signed authority, whose certificates are valid for ``serving_lifetime`` seconds."""
    key = new_key()
    certificate = sign_authority(
        key,
        name=name[:_LONGEST_COMMON_NAME],
        not_before=_whole_seconds(effect.not_before),
        not_after=_whole_seconds(effect.not_after),
    )
    return Authority(
        certificate=read_certificate(certificate_pem(certificate).decode()),
        key=SecretText(key_pem(key).decode()),
        serving_lifetime=serving_lifetime,
    )


def read_authority(certificate: str, key: str) -> tuple[Certificate, SecretText]:
    """Read the certificate and the unencrypted key of an authority from PEM, or raise ValueError."""
    from cryptography import x509

    with _unreadable():
        found = x509.load_pem_x509_certificate(certificate.encode())
        if load_key(key.encode()).public_key() != found.public_key():
            raise ValueError("the key must belong to the certificate")
        if not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            raise ValueError("the certificate must be a CA certificate")
    return read_certificate(certificate), SecretText(key)


def read_certificate(pem: str) -> Certificate:
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
    """Create a key and a server certificate. Return both as PEM, the key first."""
    from cryptography import x509

    key = new_key()
    certificate = sign_leaf(
        key,
        name_of(hosts[0][:_LONGEST_COMMON_NAME]),
        issuer=x509.load_pem_x509_certificate(authority.certificate.pem.encode()),
        signer=load_key(authority.key.reveal().encode()),
        purpose="server",
        not_before=_whole_seconds(serving.not_before),
        not_after=_whole_seconds(serving.not_after),
        hosts=hosts,
    )
    return SecretText((key_pem(key) + certificate_pem(certificate)).decode())


def check_hosts(hosts: Sequence[str]) -> None:
    """Reject an empty list, and hosts that are neither a DNS name nor an address."""
    if not hosts:
        raise InvalidArgumentError("must contain the DNS name of a Service, or an address.", argument="hosts")
    for host in hosts:
        if not is_address(host) and subdomain_problems(host):
            raise InvalidArgumentError(f"must be DNS names in lower case or addresses, got {host!r}.", argument="hosts")


@contextmanager
def _unreadable() -> Generator[None]:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        yield
    except (
        TypeError,  # encrypted key
        UnsupportedAlgorithm,
        x509.DuplicateExtension,
        x509.ExtensionNotFound,
        x509.InvalidVersion,
        x509.UnsupportedGeneralNameType,
    ) as error:
        raise ValueError(f"it is not usable: {type(error).__name__}") from None


def _whole_seconds(instant: float) -> datetime:
    return from_epoch(float(int(instant)))
