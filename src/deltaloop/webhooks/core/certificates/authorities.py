"""What the Secret of the webhooks' certificates holds, and for how long what in it is good.

Times are seconds since 1970 on the API server's clock: it is the one that checks the certificates.
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
    """How long certificates live, all in seconds.

    Attributes:
        authority_lifetime: How long an authority is valid.
        rotate_before: So long before an authority expires, its successor is made.
        serving_lifetime: How long a replica's certificate is valid; the authority before is trusted so long, too.
        propagation: How long an authority is in every ``caBundle`` before the first certificate of it is served, so
            that each API server has seen it.
        skew: How much clocks may differ: certificates are valid from so long before they were made, and the waits of a
            rotation are so much longer.
    """

    authority_lifetime: float = 365 * _DAY
    rotate_before: float = 120 * _DAY
    serving_lifetime: float = 7 * _DAY
    propagation: float = _HOUR
    skew: float = _HOUR

    def __post_init__(self) -> None:
        """Refuse lifetimes in which no rotation has room.

        Raises:
            InvalidArgumentError: Naming what is too short.
        """
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
                f"CertificateTiming: rotate_before is {self.rotate_before:g}; {least:g} are needed (serving_lifetime,"
                " propagation and three times skew), so that a rotation ends before the authority expires"
            )
        if self.authority_lifetime < 2 * self.rotate_before:
            raise InvalidArgumentError(
                f"CertificateTiming: authority_lifetime is {self.authority_lifetime:g}; twice rotate_before is needed"
            )
        if self.serving_lifetime < 6 * self.skew:
            raise InvalidArgumentError(
                f"CertificateTiming: serving_lifetime is {self.serving_lifetime:g}; six times skew is needed"
            )


@final
@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate that anybody may see.

    Attributes:
        fingerprint: Of the whole certificate; what tells it from others.
        pem: The certificate as text.
        not_before: Since when it is valid.
        not_after: Until when it is.
    """

    fingerprint: str
    pem: str
    not_before: float
    not_after: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority with its key.

    Attributes:
        certificate: What is in ``caBundle``.
        key: Its key in PEM; it is nowhere but in the Secret and in the memory of replicas.
        serving_lifetime: How long certificates of it are valid at most. It stands in the Secret, so that replicas with
            other options keep to it.
        published_at: When it was first seen in every ``caBundle``; None before.
    """

    certificate: Certificate
    key: SecretText
    serving_lifetime: float
    published_at: float | None = None


@final
@dataclass(frozen=True, slots=True)
class FormerAuthority:
    """A certificate whose authority signs nothing any more, while certificates of it may still be served.

    Attributes:
        certificate: What is in ``caBundle``.
        trusted_until: When it may leave it.
        dropped: Whether it is to leave it. It stands in the Secret, and so is the same to replicas with other clocks.
    """

    certificate: Certificate
    trusted_until: float
    dropped: bool = False


@final
@dataclass(frozen=True, slots=True)
class Authorities:
    """What the Secret holds.

    Attributes:
        signer: Whose certificates are served.
        successor: The next signer, made and published in time; None between rotations.
        former: Those before, the newest first.
    """

    signer: Authority
    successor: Authority | None = None
    former: tuple[FormerAuthority, ...] = ()

    def known(self) -> frozenset[str]:
        """Return the fingerprints of all of them."""
        return frozenset(each.fingerprint for each in self._certificates()) | {
            each.certificate.fingerprint for each in self.former
        }

    def trusted(self) -> tuple[Certificate, ...]:
        """Return what belongs in ``caBundle``."""
        return self._certificates() + tuple(each.certificate for each in self.former if not each.dropped)

    def _certificates(self) -> tuple[Certificate, ...]:
        successor = (self.successor.certificate,) if self.successor is not None else ()
        return (self.signer.certificate, *successor)
