"""A year of certificates in seconds: no API server ever meets a replica that it cannot trust."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from deltaloop.errors import InvalidArgumentError
from deltaloop.webhooks.core.certificates.authorities import Authorities, CertificateTiming
from deltaloop.webhooks.core.certificates.rotation import (
    NotReady,
    SecretSeen,
    SecretState,
    TargetSeen,
    decide,
)
from tests.nightly import examples
from tests.webhooks.core.certificates.world import DAY, HOUR, START, TARGETS, World, user_authority


def test_first_start_is_ready_within_two_minutes() -> None:
    world = World()
    world.advance(120)
    assert world.secret_writes <= 3  # made, published, and what a race takes
    assert all(each.ready_since is not None for each in world.replicas[:2])
    assert {issuer for each in world.replicas for issuer in each.issued} == {world.held.signer.certificate.fingerprint}
    world.advance(HOUR)
    world.settled()


def test_two_years_without_a_failed_handshake() -> None:
    world = World()
    signers: list[str] = []
    for _ in range(2 * 365):
        world.advance(DAY)
        signer = world.held.signer.certificate.fingerprint
        if signers[-1:] != [signer]:
            signers.append(signer)
    assert len(signers) == 1 + (2 * 365) // 245
    assert world.handshakes > 5_000
    # A rotation: made, published, serving, dropped, forgotten.
    assert world.secret_writes < 7 * len(signers)
    world.settled()


def test_old_and_new_authority_are_trusted_during_rotation() -> None:
    world = World()
    world.advance(244 * DAY)
    first = world.held.signer.certificate
    world.advance(2 * DAY)
    assert world.held.signer.certificate != first
    assert [each.certificate for each in world.held.former] == [first]
    assert all(each.issued[-1] == world.held.signer.certificate.fingerprint for each in world.replicas)
    world.advance(6 * DAY)
    assert all(first in (bundle or ()) for found in world.bundles.values() for bundle in found.values())
    world.advance(2 * DAY)
    assert world.held.former == ()
    assert not any(first in (bundle or ()) for found in world.bundles.values() for bundle in found.values())


def test_deleted_secret_is_replaced_without_failed_request() -> None:
    world = World()
    world.advance(30 * DAY)
    first = world.held.signer.certificate
    world.write_secret(None)
    world.advance(60)
    assert world.held.signer.certificate != first
    assert [each.certificate for each in world.held.former] == [first]
    assert [each.serving.issuer for each in world.replicas if each.serving] == [first] * 3
    world.advance(5 * HOUR)
    assert {each.serving.issuer for each in world.replicas if each.serving} == {world.held.signer.certificate}
    world.advance(8 * DAY)
    assert world.held.former == ()
    world.settled()


def test_secret_deleted_while_all_replicas_restart() -> None:
    world = World()
    world.advance(30 * DAY)
    world.write_secret(None)
    for index in range(3):
        world.restart(index)
    world.advance(15 * 60)
    assert all(each.ready_since is not None for each in world.replicas)
    world.advance(20 * DAY)
    world.settled()


def test_restarted_replicas_reuse_the_secret() -> None:
    world = World()
    world.advance(30 * DAY)
    before = world.held
    for index in range(3):
        world.restart(index)
    world.advance(15 * 60)
    assert world.held == before
    assert all(each.ready_since is not None for each in world.replicas)


def test_broken_secret_is_replaced() -> None:
    world = World()
    world.advance(30 * DAY)
    world.write_secret("certainly not JSON")
    world.advance(30 * DAY)
    world.settled()


def test_user_provided_authority_is_adopted() -> None:
    world = World()
    world.advance(30 * DAY)
    own = user_authority(world)
    world.write_secret(own)
    world.advance(10)
    assert world.held.former  # what is served, though the user did not know it
    world.advance(30 * DAY)
    assert world.held.signer.certificate == own.signer.certificate
    assert {each.serving.issuer for each in world.replicas if each.serving} == {own.signer.certificate}
    world.settled()


def test_expired_authority_after_downtime_is_replaced() -> None:
    world = World()
    world.advance(30 * DAY)
    world.now += 400 * DAY
    for index in range(3):
        world.restart(index)
    world.advance(HOUR)
    assert world.held.signer.certificate.not_after > world.now
    assert world.held.former == ()
    world.settled()


def test_changed_ca_bundle_is_repaired() -> None:
    world = World()
    world.advance(30 * DAY)
    for bundle in ((), None):
        world.spoil(TARGETS[0], bundle)
        world.advance(2)
        assert not world.spoilt
        world.advance(DAY)
    world.settled()


def test_serving_continues_without_permission_to_write_secret() -> None:
    world = World()
    world.advance(230 * DAY)
    world.rights_missing = True
    world.advance(130 * DAY)
    assert all(each.refused for each in world.replicas)
    world.rights_missing = False
    world.advance(2 * DAY)
    world.settled()


def test_racing_replicas_keep_one_authority() -> None:
    world = World(replicas=(0.0, HOUR))
    first, second = world.replicas
    while world.secret_writes < 2 or world.conflicts < 1:  # step by step beside each other
        for replica in (first, second):
            world.step(replica)
    world.advance(HOUR)
    assert world.made == 2  # the other one's was thrown away
    world.settled()


def test_ca_bundle_managed_by_another_tool_is_kept() -> None:
    held = Authorities(World().authority(START, START + 365 * DAY))
    target = TargetSeen(TARGETS[1], {"": ()}, managed_elsewhere=True)
    found = decide(
        SecretSeen(SecretState.HELD, START, held), [target], None, now=START + DAY, timing=CertificateTiming()
    )
    assert found.bundles == ()
    assert found.not_ready is None


def test_no_writes_while_configurations_are_unreadable() -> None:
    found = decide(SecretSeen(SecretState.MISSING, START), None, None, now=START, timing=CertificateTiming())
    assert (found.secret, found.bundles, found.not_ready) == (None, (), NotReady.NO_CERTIFICATE)


@pytest.mark.parametrize(
    "short", [{"rotate_before": DAY}, {"authority_lifetime": 200 * DAY}, {"serving_lifetime": HOUR}, {"skew": 0.0}]
)
def test_too_short_lifetimes_are_rejected(short: dict[str, float]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        CertificateTiming(**short)
    assert caught.value.argument.startswith("CertificateTiming.")


class Certificates(RuleBasedStateMachine):
    """Users, restarts, time, and replicas whose requests are interleaved in any way."""

    decide: Any = staticmethod(decide)

    @initialize(clocks=st.lists(st.floats(0, HOUR), min_size=2, max_size=3), lag=st.floats(0, HOUR))
    def begin(self, clocks: list[float], lag: float) -> None:
        from tests.webhooks.core.certificates.world import ApiServer

        servers = (ApiServer(0.0, HOUR), ApiServer(lag, 0.0))
        self.world = World(replicas=clocks, servers=servers, decide=type(self).decide)
        self.count = len(clocks)

    @rule(seconds=st.sampled_from([1.0, 60.0, HOUR, 3 * HOUR, DAY, 8 * DAY, 60 * DAY, 150 * DAY]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule(index=st.integers(0, 2), steps=st.integers(1, 4))
    def a_replica_goes_on(self, index: int, steps: int) -> None:
        for _ in range(steps):
            self.world.step(self.world.replicas[index % self.count])

    @rule(index=st.integers(0, 2))
    def a_replica_restarts(self, index: int) -> None:
        self.world.restart(index % self.count)

    @rule(index=st.integers(0, 2), hours=st.floats(1, 24))
    def a_replica_is_cut_off(self, index: int, hours: float) -> None:
        self.world.replicas[index % self.count].cut_off_until = self.world.now + hours * HOUR

    @rule()
    def the_secret_is_deleted(self) -> None:
        self.world.write_secret(None)

    @rule()
    def the_secret_is_broken(self) -> None:
        self.world.write_secret("broken")

    @rule(lifetime=st.sampled_from([60 * DAY, 3650 * DAY]))
    def the_secret_is_replaced(self, lifetime: float) -> None:
        self.world.write_secret(user_authority(self.world, lifetime=lifetime))

    @rule()
    def former_authorities_are_forgotten(self) -> None:
        if isinstance(self.world.secret, Authorities):
            self.world.write_secret(replace(self.world.secret, former=()))

    @rule(which=st.sampled_from(TARGETS))
    def a_bundle_is_spoilt(self, which: Any) -> None:
        self.world.spoil(which)

    @invariant()
    def is_trusted(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.advance(30 * DAY)
            self.world.settled()


def machine(decides: Any, **options: Any) -> None:
    kind = type("Certificates", (Certificates,), {"decide": staticmethod(decides)})
    run_state_machine_as_test(kind, settings=settings(deadline=None, **options))


def test_ready_replicas_are_always_trusted() -> None:
    machine(decide, max_examples=examples(12), stateful_step_count=15)


def eventful(decides: Any, *, quiet_days: int = 0) -> None:
    """Two years: a replica sees little of the API server, a user brings an authority, rights are missing."""
    World(decide=decides).advance(quiet_days * DAY)
    world = World(decide=decides)
    for day in range(0, 760, 2):
        world.replicas[2].cut_off_until = world.now + 2 * DAY - HOUR
        world.advance(2 * DAY)
        if day == 300:
            world.write_secret(user_authority(world, lifetime=300 * DAY))
        world.rights_missing = 450 < day < 720
    world.settled()


def test_scripted_event_history_passes() -> None:
    eventful(decide)


@pytest.mark.parametrize("missing", range(3))
def test_one_webhook_without_trust_prevents_serving(missing: int) -> None:
    held = Authorities(World().authority(START, START + 365 * DAY))
    trusted = (held.signer.certificate,)
    bundles = [() if number == missing else trusted for number in range(3)]
    targets = [TargetSeen(TARGETS[0], {"a": bundles[0], "b": bundles[1]}), TargetSeen(TARGETS[1], {"": bundles[2]})]
    found = decide(
        SecretSeen(SecretState.HELD, START, held), targets, None, now=START + DAY, timing=CertificateTiming()
    )
    assert found.not_ready is NotReady.NOT_TRUSTED
    assert found.secret is None
    assert [each.certificates for each in found.bundles] == [trusted]
