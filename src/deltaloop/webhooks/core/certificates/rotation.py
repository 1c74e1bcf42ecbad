"""Rotation of webhook certificates: decide how a replica changes the Secret, ``caBundle`` and its own certificate.

There is no leader. Each write to the Secret names the version on which it is based. If two replicas write at once, one
succeeds and the other reads again.

A rotation has four steps, and no request may fail during any step:

1. *Made.* ``rotate_before`` the signer expires, a successor is added to the Secret. No certificate of it is served.
2. *Published.* Every replica copies the authorities from the Secret into ``caBundle``. When every ``caBundle`` contains
   the successor, the time is recorded in the Secret.
3. *Serving.* API servers see a change with a delay. The successor therefore becomes the signer ``propagation`` plus
   ``skew`` after its publication. Replicas then issue certificates of the new signer. The old signer is *former*.
4. *Dropped.* A replica that read the Secret before the change can still issue a certificate of the former signer,
   which is valid for ``serving_lifetime``. The former signer stays in ``caBundle`` for this time plus twice ``skew``.
   It is then removed from every ``caBundle``, and finally from the Secret.

A replica may serve a certificate of an authority that is in ``caBundle`` but not in the Secret, because a user changed
the Secret. Such an authority is first added to the Secret as a former authority, so a deleted Secret leads to an
ordinary rotation. A replica with an outdated Secret cannot remove a newer authority, because its write to the Secret
fails first.

If the signer has not been published for long enough, a replica continues to serve its current certificate. A replica
without a certificate uses the signer anyway, and becomes ready when every ``caBundle`` contains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias, final

from deltaloop.webhooks.core.certificates.authorities import (
    Authorities,
    Authority,
    Certificate,
    CertificateTiming,
    FormerAuthority,
)
from deltaloop.webhooks.core.certificates.targets import WebhookTarget

_RENEW_AT: Final = 1 / 3  # remaining share of a certificate's lifetime


@final
class ServerClock:
    """Estimate of the API server's time in seconds since 1970, which starts with the program's clock. Not thread-safe.

    A program whose clock is wrong by a year would otherwise replace all certificates as expired.
    """

    def __init__(self, wall: float, monotonic: float) -> None:
        self._at = wall
        self._monotonic = monotonic
        self.is_known: bool = False
        self.offset: float = 0.0
        """Seconds between the last observed server time and the previous estimate."""

    def seen(self, server: float, monotonic: float) -> None:
        """Record the server's time in whole seconds, and the monotonic time at which the request was sent."""
        # The server truncates to whole seconds, so add half a second.
        self.offset = server + 0.5 - self.now(monotonic)
        self._at, self._monotonic, self.is_known = server + 0.5, monotonic, True

    def now(self, monotonic: float) -> float:
        return self._at + (monotonic - self._monotonic)


@final
class SecretState(Enum):
    MISSING = "missing"
    UNUSABLE = "unusable"
    """The Secret is empty or damaged, and may be overwritten."""
    FOREIGN = "foreign"
    """The Secret has content that this program did not write, and is never changed."""
    HELD = "held"


@final
@dataclass(frozen=True, slots=True)
class SecretSeen:
    """Secret as read from the server. ``seen_at`` is the time at which the read was sent."""

    state: SecretState
    seen_at: float
    held: Authorities | None = None


@final
@dataclass(frozen=True, slots=True)
class TargetSeen:
    """Webhook configuration as read from the server."""

    target: WebhookTarget
    bundles: Mapping[str, tuple[Certificate, ...] | None]
    managed_elsewhere: bool = False

    def holds(self, fingerprint: str) -> bool:
        return all(any(each.fingerprint == fingerprint for each in bundle or ()) for bundle in self.bundles.values())

    def certificates(self) -> dict[str, Certificate]:
        return {each.fingerprint: each for bundle in self.bundles.values() for each in bundle or ()}


@final
@dataclass(frozen=True, slots=True)
class Serving:
    issuer: Certificate
    not_before: float
    not_after: float
    issued_at: float


@final
@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Create an authority with this validity, and decide again with it as ``spare``."""

    not_before: float
    not_after: float


@final
@dataclass(frozen=True, slots=True)
class WriteSecret:
    """Write the Secret if it has not changed, and read it again in any case."""

    held: Authorities


@final
@dataclass(frozen=True, slots=True)
class WriteBundle:
    """Write certificates into the ``caBundle`` of a target if it has not changed."""

    target: WebhookTarget
    certificates: tuple[Certificate, ...]


@final
@dataclass(frozen=True, slots=True)
class IssueServing:
    """Issue a certificate of this authority, and serve it for new connections."""

    authority: Authority
    serving: Serving


SecretEffect: TypeAlias = MakeAuthority | WriteSecret


class NotReady(Enum):
    NO_CERTIFICATE = "it has no certificate yet"
    NOT_VALID = "its certificate is not valid now"
    NOT_TRUSTED = "its certificate is not trusted by the caBundle of each webhook"
    UNREAD = "the configurations of its webhooks could not be read yet"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDecision:
    """Actions of a replica. ``wake_at`` is the time of the next decision if no event arrives before."""

    secret: SecretEffect | None
    bundles: tuple[WriteBundle, ...]
    issue: IssueServing | None
    not_ready: NotReady | None
    wake_at: float


def decide(
    secret: SecretSeen,
    targets: Sequence[TargetSeen] | None,
    serving: Serving | None,
    *,
    now: float,
    timing: CertificateTiming,
    spare: Authority | None = None,
) -> CertificateDecision:
    """Decide how a replica reacts to the observed state."""
    seen = None if targets is None else tuple(each for each in targets if not each.managed_elsewhere)
    held = secret.held
    wanted: Authorities | MakeAuthority | None = None
    if seen is not None and secret.state is not SecretState.FOREIGN:
        # The content of caBundle must be known, because its authorities may be in use and must be in the Secret.
        wanted = _wanted(held, seen, serving, now=now, timing=timing, spare=spare)
    effect: SecretEffect | None = None
    if isinstance(wanted, MakeAuthority):
        effect = wanted
    elif wanted is not None and wanted != held:
        effect = WriteSecret(wanted)
    issue = _issue(held, secret.seen_at, serving, now=now, timing=timing) if held is not None else None
    current = issue.serving if issue is not None else serving
    return CertificateDecision(
        secret=effect,
        bundles=_bundles(held, seen, now) if held is not None and seen is not None else (),
        issue=issue,
        not_ready=why_not_ready(current, targets, now=now, timing=timing),
        wake_at=_wake_at(held, current, now, timing),
    )


def _wanted(
    held: Authorities | None,
    seen: tuple[TargetSeen, ...],
    serving: Serving | None,
    *,
    now: float,
    timing: CertificateTiming,
    spare: Authority | None,
) -> Authorities | MakeAuthority:
    made = MakeAuthority(now - timing.skew, now + timing.authority_lifetime)
    signer = held.signer if held is not None else None
    successor = held.successor if held is not None else None
    former = list(held.former) if held is not None else []
    if signer is None or not _is_usable(signer, now, timing):
        signer, successor = successor, None
        if signer is None or not _is_usable(signer, now, timing):
            signer = spare
        if signer is None:
            return made
    elif successor is None and now >= signer.certificate.not_after - timing.rotate_before:
        if spare is None:
            return made
        successor = spare
    signer, successor = (_published(each, seen, now) for each in (signer, successor))
    assert signer is not None
    if successor is not None and _is_settled(successor, now, timing):
        former.insert(0, FormerAuthority(signer.certificate, _trusted_until(signer, now, timing)))
        signer, successor = successor, None
    kept = Authorities(signer, successor, _kept(former, seen, now))
    strangers = {each.fingerprint: each for each in _served_by_somebody(seen, serving, now)}
    until = now + max(timing.serving_lifetime, signer.serving_lifetime) + 2 * timing.skew
    newest = tuple(
        FormerAuthority(each, min(each.not_after, until))
        for each in strangers.values()
        if each.fingerprint not in kept.known()
    )
    return replace(kept, former=(*newest, *kept.former))


def _served_by_somebody(seen: tuple[TargetSeen, ...], serving: Serving | None, now: float) -> Iterable[Certificate]:
    for target in seen:
        yield from (each for each in target.certificates().values() if now < each.not_after)
    if serving is not None and now < serving.not_after:
        yield serving.issuer


def _published(authority: Authority | None, seen: tuple[TargetSeen, ...], now: float) -> Authority | None:
    if authority is None or authority.published_at is not None:
        return authority
    if not all(target.holds(authority.certificate.fingerprint) for target in seen):
        return authority
    return replace(authority, published_at=now)


def _is_usable(authority: Authority, now: float, timing: CertificateTiming) -> bool:
    certificate = authority.certificate
    return certificate.not_before - timing.skew <= now < certificate.not_after


def _is_settled(authority: Authority, now: float, timing: CertificateTiming) -> bool:
    """Return whether every API server trusts an authority, even if another clock recorded the publication."""
    since = authority.published_at
    settled = since is not None and now >= since + timing.propagation + timing.skew
    return settled and authority.certificate.not_before <= now


def _trusted_until(signer: Authority, now: float, timing: CertificateTiming) -> float:
    """Return the latest expiry of certificates that other replicas may have issued just now."""
    return min(signer.certificate.not_after, now + signer.serving_lifetime + 2 * timing.skew)


def _kept(former: Iterable[FormerAuthority], seen: tuple[TargetSeen, ...], now: float) -> tuple[FormerAuthority, ...]:
    """Return the former authorities to keep. An authority in ``caBundle`` must have an entry to be known."""
    there = {fingerprint for target in seen for fingerprint in target.certificates()}
    return tuple(
        each if now < each.trusted_until else replace(each, dropped=True)
        for each in former
        if not each.dropped or each.certificate.fingerprint in there
    )


def _bundles(held: Authorities, seen: tuple[TargetSeen, ...], now: float) -> tuple[WriteBundle, ...]:
    known = held.known()
    trusted = held.trusted()
    wanted = {each.fingerprint for each in trusted}
    writes: list[WriteBundle] = []
    for target in seen:
        found = target.certificates()
        if any(now < each.not_after and each.fingerprint not in known for each in found.values()):
            continue  # a replica may serve its certificate, so the Secret must name it first
        if any(bundle is None or {each.fingerprint for each in bundle} != wanted for bundle in target.bundles.values()):
            writes.append(WriteBundle(target.target, trusted))
    return tuple(writes)


def _issue(
    held: Authorities,
    seen_at: float,
    serving: Serving | None,
    *,
    now: float,
    timing: CertificateTiming,
) -> IssueServing | None:
    signer = held.signer
    if not _is_usable(signer, now, timing):
        return None
    if serving is not None and now < serving.not_after - timing.skew:
        if serving.issuer == signer.certificate:
            if now < _renew_at(serving):
                return None
        elif not _is_settled(signer, now, timing):
            return None  # its authority is trusted, or is being added to the Secret
    # Count from the read, because a later writer of the Secret counts from a later time.
    not_after = min(seen_at + signer.serving_lifetime, signer.certificate.not_after)
    if serving is not None and serving.issuer == signer.certificate and not_after <= serving.not_after:
        return None
    not_before = max(now - timing.skew, signer.certificate.not_before)
    return IssueServing(signer, Serving(signer.certificate, not_before, not_after, now))


def _renew_at(serving: Serving) -> float:
    return serving.not_after - (serving.not_after - serving.issued_at) * _RENEW_AT


def why_not_ready(
    serving: Serving | None, targets: Sequence[TargetSeen] | None, *, now: float, timing: CertificateTiming
) -> NotReady | None:
    """Return why a replica cannot receive requests, or None if it can."""
    if serving is None:
        return NotReady.NO_CERTIFICATE
    # An API server whose clock is ahead rejects the certificate earlier.
    if not serving.not_before <= now < serving.not_after - timing.skew:
        return NotReady.NOT_VALID
    if targets is None:
        return NotReady.UNREAD
    trusted = all(target.holds(serving.issuer.fingerprint) for target in targets if not target.managed_elsewhere)
    return None if trusted else NotReady.NOT_TRUSTED


def _wake_at(held: Authorities | None, serving: Serving | None, now: float, timing: CertificateTiming) -> float:
    instants = [now + timing.serving_lifetime]
    if held is not None:
        instants += [held.signer.certificate.not_after, held.signer.certificate.not_after - timing.rotate_before]
        for each in (held.signer, held.successor):
            if each is not None and each.published_at is not None:
                instants.append(each.published_at + timing.propagation + timing.skew)
        instants += [each.trusted_until for each in held.former]
    if serving is not None:
        instants += [_renew_at(serving), serving.not_after - timing.skew, serving.not_after]
    return min(each for each in instants if each > now)
