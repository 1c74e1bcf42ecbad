"""How certificates of webhooks live: what a replica does about the Secret, ``caBundle``, and its own certificate.

No replica leads. The Secret is the one thing that all share, and each of its changes names the version that it is based
on: of two replicas that want to make one, one does, and the other reads again. A Lease beside it would say who may try,
could be held by one who cannot, and would still not make the write safe.

A rotation has four steps, and no request may fail in any of them:

1. *Made.* ``rotate_before`` the signer expires, a successor is put into the Secret; nothing is served from it.
2. *Published.* Every replica writes what the Secret says into ``caBundle``; once all of them have been seen to hold the
   successor, the Secret says since when.
3. *Serving.* API servers see a change some time later. So the successor becomes the signer ``propagation`` (and
   ``skew``) after it was published, and replicas issue themselves certificates of it. The signer before is *former*.
4. *Dropped.* A certificate of the former signer was issued by who had read the Secret before the change, and is valid
   for ``serving_lifetime`` from then. So long, and twice ``skew``, it stays in ``caBundle``; then in none of them, and
   last in no Secret.

What is in ``caBundle`` and not in the Secret may be what a replica serves from: somebody has deleted the Secret, has
put an authority of his own there, or has broken it. It is never taken out, but written into the Secret first, as one
more former authority. That is why a deleted Secret is a rotation like others, and why a replica that has read an old
Secret can take nothing out that a newer one put in: its write into the Secret fails first.

Where an authority is there that was not published long enough, a replica goes on serving the certificate that it has.
One that has none takes what there is, and is ready when every ``caBundle`` holds it: nobody is served better by none.

Webhooks that another tool gives its ``caBundle`` (cert-manager's annotation) are not touched.
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

_RENEW_AT: Final = 1 / 3  # of a certificate's life


@final
class SecretState(Enum):
    """What was found where the Secret should be."""

    MISSING = "missing"
    UNUSABLE = "unusable"
    """There, and empty, or not what this program writes."""
    FOREIGN = "foreign"
    """There, with something in it that this program did not write: it is left alone."""
    HELD = "held"


@final
@dataclass(frozen=True, slots=True)
class SecretSeen:
    """The Secret as the server had it.

    Attributes:
        state: Whether it can be used.
        seen_at: When it was asked for; what it says may have changed since.
        held: What it holds, if it can be used.
    """

    state: SecretState
    seen_at: float
    held: Authorities | None = None


@final
@dataclass(frozen=True, slots=True)
class TargetSeen:
    """A configuration of webhooks as the server had it.

    Attributes:
        target: Which one.
        bundles: For each webhook in it that is ours: the certificates of its ``caBundle``; None if that is no text of
            certificates. Empty if there is no such configuration, or it calls no webhook.
        managed_elsewhere: Whether another tool writes ``caBundle``.
    """

    target: WebhookTarget
    bundles: Mapping[str, tuple[Certificate, ...] | None]
    managed_elsewhere: bool = False

    def holds(self, fingerprint: str) -> bool:
        """Tell whether all its webhooks trust a certificate."""
        return all(any(each.fingerprint == fingerprint for each in bundle or ()) for bundle in self.bundles.values())

    def certificates(self) -> dict[str, Certificate]:
        """Return all certificates in it, by fingerprint."""
        return {each.fingerprint: each for bundle in self.bundles.values() for each in bundle or ()}


@final
@dataclass(frozen=True, slots=True)
class Serving:
    """The certificate that a replica serves.

    Attributes:
        issuer: Its authority.
        not_before: Since when it is valid.
        not_after: Until when it is.
        issued_at: When it was made.
    """

    issuer: Certificate
    not_before: float
    not_after: float
    issued_at: float


@final
@dataclass(frozen=True, slots=True)
class MakeAuthority:
    """Make an authority, valid from then to then, and decide again with it as ``spare``."""

    not_before: float
    not_after: float


@final
@dataclass(frozen=True, slots=True)
class WriteSecret:
    """Write this into the Secret, if it is still what was seen; whatever comes of it, read it again."""

    held: Authorities


@final
@dataclass(frozen=True, slots=True)
class WriteBundle:
    """Write these certificates into the ``caBundle`` of a target, if it is still what was seen."""

    target: WebhookTarget
    certificates: tuple[Certificate, ...]


@final
@dataclass(frozen=True, slots=True)
class IssueServing:
    """Issue a certificate of this authority, and serve it from the next connection on."""

    authority: Authority
    serving: Serving


SecretEffect: TypeAlias = MakeAuthority | WriteSecret


class NotReady(Enum):
    """Why a replica is not ready to be called."""

    NO_CERTIFICATE = "it has no certificate yet"
    NOT_VALID = "its certificate is not valid now"
    NOT_TRUSTED = "its certificate is not trusted by the caBundle of each webhook"
    UNREAD = "the configurations of its webhooks could not be read yet"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDecision:
    """What a replica does now.

    Attributes:
        secret: The one thing to do about the Secret; None if it is as it should be.
        bundles: What to write into configurations of webhooks.
        issue: The certificate to serve from now on; None to go on with the one that there is.
        not_ready: Why it is not ready; None if it is.
        wake_at: When to decide again, if nothing happens before.
    """

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
    """Say what a replica does about what it has seen.

    Args:
        secret: What was found where the Secret should be.
        targets: The configurations whose webhooks are ours, seen after the Secret; None if they could not be read.
        serving: What this replica serves.
        now: Seconds since 1970 on the API server's clock.
        timing: How long things live.
        spare: An authority that was made for ``MakeAuthority``, and is in no Secret yet.
    """
    seen = None if targets is None else tuple(each for each in targets if not each.managed_elsewhere)
    held = secret.held
    wanted: Authorities | MakeAuthority | None = None
    if seen is not None and secret.state is not SecretState.FOREIGN:
        # Never without having seen what is in caBundle: it may be served, and has to be in the Secret.
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
    """Return what the Secret should hold."""
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
    """Tell whether every API server trusts it, whichever clock has said since when it is published."""
    since = authority.published_at
    settled = since is not None and now >= since + timing.propagation + timing.skew
    return settled and authority.certificate.not_before <= now


def _trusted_until(signer: Authority, now: float, timing: CertificateTiming) -> float:
    """Return until when certificates of a signer may be served that others may still have issued a moment ago."""
    return min(signer.certificate.not_after, now + signer.serving_lifetime + 2 * timing.skew)


def _kept(former: Iterable[FormerAuthority], seen: tuple[TargetSeen, ...], now: float) -> tuple[FormerAuthority, ...]:
    """Return those that the Secret still names; one that a ``caBundle`` has would be taken for a stranger."""
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
            continue  # somebody may serve from it: the Secret has to name it first
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
            return None  # its authority is trusted: by the Secret, or it is written there by now
    # From when the Secret was asked for: whoever has changed it since counts from a later time.
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
    """Return why a replica should not be called now; None if it may be.

    Args:
        serving: What it serves.
        targets: As for ``decide``.
        now: Seconds since 1970 on the API server's clock.
        timing: How long things live.
    """
    if serving is None:
        return NotReady.NO_CERTIFICATE
    # An API server whose clock is ahead would refuse it a little earlier.
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
