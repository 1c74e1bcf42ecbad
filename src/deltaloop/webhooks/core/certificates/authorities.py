"""Content of the authorities' Secret, and the lifetimes of certificates.

Times are seconds since 1970 on the API server's clock, because the API server verifies the certificates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.redaction import SecretText

_DAY: Final = 86400.0
_HOUR: Final = 3600.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateTiming:
    """Lifetimes and waits of certificates, in seconds.

    Attributes:
        authority_lifetime: Lifetime of an authority in seconds.
        rotate_before: Time in seconds before an authority's expiry at which its successor is created.
        serving_lifetime: Lifetime in seconds of a replica's certificate. The former authority is trusted for this time.
        propagation: Time in seconds for which an authority must be in every ``caBundle`` before its first certificate
            is served, so that each API server has seen it.
        skew: Largest clock skew in seconds. Certificates become valid this long before their creation, and the waits of
            a rotation are extended by it.

    Raises:
        InvalidArgumentError: If a lifetime is too short for a rotation.
    """

    authority_lifetime: float = 365 * _DAY
    rotate_before: float = 120 * _DAY
    serving_lifetime: float = 7 * _DAY
    propagation: float = _HOUR
    skew: float = _HOUR

    def __post_init__(self) -> None:
        check_types(self)
        require_positive(
            "CertificateTiming",
            authority_lifetime=self.authority_lifetime,
            rotate_before=self.rotate_before,
            serving_lifetime=self.serving_lifetime,
            propagation=self.propagation,
            skew=self.skew,
        )
        least = self.serving_lifetime + self.propagation + 3 * self.skew
        if self.rotate_before < least:
            raise InvalidArgumentError(
                f"must be at least {least:g} (serving_lifetime + propagation + 3 * skew), so rotations end before"
                f" the CA expires, got {self.rotate_before:g}.",
                argument="CertificateTiming.rotate_before",
            )
        if self.authority_lifetime < 2 * self.rotate_before:
            raise InvalidArgumentError(
                f"must be at least 2 * rotate_before, got {self.authority_lifetime:g}.",
                argument="CertificateTiming.authority_lifetime",
            )
        if self.serving_lifetime < 6 * self.skew:
            raise InvalidArgumentError(
                f"must be at least 6 * skew, got {self.serving_lifetime:g}.",
                argument="CertificateTiming.serving_lifetime",
            )


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """Certificate without its key. The fingerprint is a SHA-256."""

    fingerprint: str
    pem: str
    not_before: float
    not_after: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """Certificate authority with its key, which exists only in the Secret and in the memory of replicas."""

    certificate: Certificate
    key: SecretText
    serving_lifetime: float
    published_at: float | None = None


@final
@dataclass(frozen=True, slots=True)
class FormerAuthority:
    """Authority that no longer signs; the time ``dropped`` is stored, so that replicas with different clocks agree."""

    certificate: Certificate
    trusted_until: float
    dropped: bool = False


@final
@dataclass(frozen=True, slots=True)
class Authorities:
    """Content of the Secret. The successor exists during a rotation, and former authorities are sorted newest first."""

    signer: Authority
    successor: Authority | None = None
    former: tuple[FormerAuthority, ...] = ()

    def known(self) -> frozenset[str]:
        return frozenset(each.fingerprint for each in self._certificates()) | {
            each.certificate.fingerprint for each in self.former
        }

    def trusted(self) -> tuple[Certificate, ...]:
        """Return the certificates for ``caBundle``."""
        return self._certificates() + tuple(each.certificate for each in self.former if not each.dropped)

    def _certificates(self) -> tuple[Certificate, ...]:
        successor = (self.successor.certificate,) if self.successor is not None else ()
        return (self.signer.certificate, *successor)
