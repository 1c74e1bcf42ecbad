"""Mistakes seeded into the code, each of which the tests of ``tests.webhooks.core.certificates.test_rotation`` must
find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.webhooks.core.certificates.test_rotation import eventful
from tests.webhooks.core.certificates.world import DAY, HOUR, START, TARGETS, HandshakeError, World

from deltaloop.webhooks.core.certificates import rotation
from deltaloop.webhooks.core.certificates.authorities import Authorities, CertificateTiming
from deltaloop.webhooks.core.certificates.rotation import (
    SecretSeen,
    SecretState,
    TargetSeen,
    WriteSecret,
    decide,
)
from lab.mutants.edited import edited_module

BUGS = {
    "the old authority is dropped when the new one serves": (
        "now + signer.serving_lifetime + 2 * timing.skew)",
        "now + timing.skew)",
    ),
    "the new authority serves as soon as it is made": (
        "since = authority.published_at\n    settled = since is not None and now >= since + timing.propagation",
        "since = authority.certificate.not_before\n    settled = since is not None and now >= since",
    ),
    "the new authority serves as soon as it is published": ("now >= since + timing.propagation + timing.skew", "True"),
    "certificates are valid from when they are made": (
        "not_before = max(now - timing.skew, signer.certificate.not_before)",
        "not_before = now",
    ),
    "strangers are taken out of caBundle": (
        "if any(now < each.not_after and each.fingerprint not in known for each in found.values()):",
        "if False:",
    ),
    "nobody rotates": ("now >= signer.certificate.not_after - timing.rotate_before", "False"),
    "nobody renews": ("if now < _renew_at(serving):", "if True:"),
    "what is new is served at once": ("elif not _is_settled(signer, now, timing):", "elif False:"),
    "a certificate lives longer than its authority": (
        "min(seen_at + signer.serving_lifetime, signer.certificate.not_after)",
        "seen_at + signer.serving_lifetime",
    ),
}


def seeded(bug: str) -> Any:
    """Return ``decide`` with a bug; what it returns is of the classes that the world knows."""
    names = edited_module(rotation, BUGS[bug])
    names.update({name: value for name, value in vars(rotation).items() if isinstance(value, type)})
    return names["decide"]


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bug_breaks_handshake(bug: str) -> None:
    with pytest.raises(AssertionError):
        eventful(seeded(bug), quiet_days=380 if bug == "nobody rotates" else 0)


def test_rotation_tolerates_clock_skew() -> None:
    """It was published by a clock that is an hour behind the one that counts: only the second hour is sure."""
    world = World()
    signer, successor = world.authority(START, START + 365 * DAY), world.authority(START, START + 365 * DAY)
    held = Authorities(signer, replace(successor, published_at=START))
    bundle = (signer.certificate, successor.certificate)
    targets = [TargetSeen(target, dict.fromkeys(target.webhooks or ("",), bundle)) for target in TARGETS]

    def promoted(decides: Any, hours: float) -> bool:
        now = START + hours * HOUR
        seen = SecretSeen(SecretState.HELD, now, held)
        found = decides(seen, targets, None, now=now, timing=CertificateTiming()).secret
        return isinstance(found, WriteSecret) and found.held.signer.certificate == successor.certificate

    assert [promoted(decide, hours) for hours in (0.9, 1.1, 1.9, 2.0)] == [False, False, False, True]
    waits = "now >= since + timing.propagation"
    ignoring = edited_module(rotation, (f"{waits} + timing.skew", waits))
    ignoring.update({name: value for name, value in vars(rotation).items() if isinstance(value, type)})
    assert promoted(ignoring["decide"], 1.1)


def test_check_describes_failure() -> None:
    world = World()
    world.advance(HOUR)
    world.replicas[0].cut_off_until = world.now + 8 * DAY  # longer than a certificate lives
    with pytest.raises(HandshakeError, match=r"day 7\.\d+: replica 0 is no longer ready"):
        world.advance(9 * DAY)
    with pytest.raises(HandshakeError, match=r"does not trust it 3600\.0 s after"):
        World(decide=seeded("the new authority serves as soon as it is published")).advance(250 * DAY)
