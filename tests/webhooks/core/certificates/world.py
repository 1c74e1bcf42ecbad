"""A cluster as far as certificates of webhooks go: a Secret, ``caBundle``, API servers that see late, replicas.

The invariant is checked at every event: each replica that says that it is ready is trusted by each API server, by that
one's clock and by the ``caBundle`` that it has seen so far. Exempt is only what nobody could better: the first moments
of a replica that had no certificate, and the time in which somebody else has spoilt a ``caBundle``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from deltaloop.api.redaction import SecretText
from deltaloop.webhooks.core.certificates import rotation
from deltaloop.webhooks.core.certificates.authorities import Authorities, Authority, Certificate, CertificateTiming
from deltaloop.webhooks.core.certificates.rotation import (
    CertificateDecision,
    MakeAuthority,
    SecretSeen,
    SecretState,
    Serving,
    TargetSeen,
    WriteSecret,
)
from deltaloop.webhooks.core.certificates.targets import TargetKind, WebhookTarget

Decide = Callable[..., CertificateDecision]
DAY, HOUR = 86400.0, 3600.0
START = 1_800_000_000.0
TARGETS = (
    WebhookTarget(TargetKind.VALIDATING, "databases", ("a.example.com", "b.example.com")),
    WebhookTarget(TargetKind.CONVERSION, "databases.example.com"),
)
Bundles = dict[str, tuple[Certificate, ...] | None]


class HandshakeError(AssertionError):
    """An API server would not have trusted a replica that is ready."""


@dataclass
class ApiServer:
    """Sees a change of ``caBundle`` so many seconds late, by a clock that is so far ahead."""

    lag: float
    ahead: float


@dataclass
class Replica:
    """A program that serves webhooks."""

    ahead: float
    notices_after: float
    serving: Serving | None = None
    ready_since: float | None = None
    new: bool = True
    wake_at: float = START
    cut_off_until: float = 0.0
    under_way: Generator[None] | None = None
    issued: list[str] = field(default_factory=list[str])
    refused: int = 0


class World:
    """Everything at one instant; time goes on by ``advance``."""

    def __init__(
        self,
        *,
        replicas: Sequence[float] = (0.0, HOUR / 2, HOUR),
        servers: Sequence[ApiServer] = (ApiServer(0.0, 0.0), ApiServer(HOUR, HOUR)),
        timing: CertificateTiming | None = None,
        decide: Decide = rotation.decide,
    ) -> None:
        self.now = START
        self.timing = timing or CertificateTiming()
        self.decide = decide
        self.servers = list(servers)
        self.replicas = [Replica(ahead, notices) for ahead, notices in zip(replicas, (1.0, 30.0, 600.0), strict=False)]
        self.secret: Authorities | str | None = None
        self.secret_version = 0
        self.bundles: dict[WebhookTarget, Bundles] = {
            each: dict.fromkeys(each.webhooks or ("",), ()) for each in TARGETS
        }
        self.versions = dict.fromkeys(TARGETS, 0)
        self.history: list[tuple[float, dict[WebhookTarget, Bundles]]] = [(0.0, dict(self.bundles))]
        self._found: dict[tuple[int, Certificate], str] = {}
        self.spoilt_until = 0.0
        self.spoilt: set[WebhookTarget] = set()
        self.made = 0
        self.handshakes = 0
        self.secret_writes = 0
        self.bundle_writes = 0
        self.conflicts = 0
        self.rights_missing: bool = False
        self.unchecked = False
        self.last_write_wins = False  # a server that compares no versions: never
        self.log: list[str] = []

    # -- what the world has

    @property
    def held(self) -> Authorities:
        assert isinstance(self.secret, Authorities), self.secret
        return self.secret

    def authority(self, not_before: float, not_after: float, name: str = "made") -> Authority:
        self.made += 1
        found = Certificate(f"{name}-{self.made}", f"{name}-{self.made}", not_before, not_after)
        return Authority(certificate=found, key=SecretText("k"), serving_lifetime=self.timing.serving_lifetime)

    def write_secret(self, held: Authorities | str | None) -> None:
        self.secret = held
        self.secret_version += 1
        self.changed()

    def write_bundle(self, target: WebhookTarget, bundles: Bundles) -> None:
        self.bundles[target] = bundles
        self.versions[target] += 1
        self.history.append((self.now, dict(self.bundles)))
        self.changed()

    def changed(self) -> None:
        for replica in self.replicas:
            replica.wake_at = min(replica.wake_at, self.now + replica.notices_after)

    # -- what users do

    def spoil(self, target: WebhookTarget, bundle: tuple[Certificate, ...] | None = ()) -> None:
        """Somebody applies his manifests, with another ``caBundle`` in them."""
        self.spoilt.add(target)
        self.write_bundle(target, dict.fromkeys(self.bundles[target], bundle))

    def restart(self, index: int) -> None:
        old = self.replicas[index]
        self.replicas[index] = Replica(old.ahead, old.notices_after, wake_at=self.now + 1.0)

    # -- time

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            first = min(self.replicas, key=lambda each: max(each.wake_at, each.cut_off_until))
            at = max(first.wake_at, first.cut_off_until)
            if at > until:
                break
            self._to(max(at, self.now))
            while self.step(first):
                self.check()
        self._to(until)

    def _to(self, instant: float) -> None:
        while self.now < instant:
            self.now = min(instant, self.now + 12 * HOUR)
            self.check()

    def step(self, replica: Replica) -> bool:
        """Have a replica go on to its next request; False at the end of what it does now."""
        if replica.under_way is None:
            replica.under_way = self._pass(replica)
        try:
            next(replica.under_way)
        except StopIteration:
            replica.under_way = None
            self.check()
            return False
        self.check()
        return True

    def _pass(self, replica: Replica) -> Generator[None]:
        replica.wake_at = self.now + 2 * DAY  # it looks now and then by itself
        for _ in range(6):
            seen_at, secret, version = self.now, self.secret, self.secret_version
            yield
            versions, found = dict(self.versions), {name: dict(each) for name, each in self.bundles.items()}
            targets = [TargetSeen(target, bundles) for target, bundles in found.items()]
            state = (
                SecretState.MISSING
                if secret is None
                else SecretState.HELD
                if isinstance(secret, Authorities)
                else SecretState.UNUSABLE
            )
            seen = SecretSeen(state, seen_at + replica.ahead, secret if isinstance(secret, Authorities) else None)

            clock = self.now + replica.ahead
            decision = self.decide(seen, targets, replica.serving, now=clock, timing=self.timing)
            if isinstance(decision.secret, MakeAuthority):
                spare = self.authority(decision.secret.not_before, decision.secret.not_after)
                decision = self.decide(seen, targets, replica.serving, now=clock, timing=self.timing, spare=spare)
            self._serve(replica, decision)
            yield
            again = False
            if isinstance(decision.secret, WriteSecret):
                again = not self.rights_missing
                if self.rights_missing:
                    replica.refused += 1
                elif self.last_write_wins or self.secret_version == version:
                    self.secret_writes += 1
                    self.write_secret(decision.secret.held)
                else:
                    self.conflicts += 1
                yield
            for write in decision.bundles:
                again = True
                if self.last_write_wins or self.versions[write.target] == versions[write.target]:
                    self.bundle_writes += 1
                    self.spoilt.discard(write.target)
                    self.write_bundle(write.target, dict.fromkeys(found[write.target], write.certificates))
                else:
                    self.conflicts += 1
                yield
            if not again:
                replica.wake_at = min(replica.wake_at, decision.wake_at - replica.ahead)
                return

    def _serve(self, replica: Replica, decision: CertificateDecision) -> None:
        if decision.issue is not None:
            replica.serving = decision.issue.serving
            replica.issued.append(decision.issue.serving.issuer.fingerprint)
        if decision.not_ready is not None:
            if replica.ready_since is not None:
                self._no_longer_ready(self.replicas.index(replica))
            replica.ready_since = None
        elif replica.ready_since is None:
            replica.ready_since = self.now

    # -- the invariant

    def _no_longer_ready(self, number: int) -> None:
        """A replica stays ready, unless somebody keeps it from it."""
        if not self.rights_missing and not self.spoilt and self.now > self.spoilt_until + DAY:
            raise HandshakeError(f"day {(self.now - START) / DAY:.2f}: replica {number} is no longer ready")
        self.replicas[number].ready_since = None
        self.replicas[number].new = True

    def check(self) -> None:
        if self.unchecked:
            return
        longest = max(each.lag for each in self.servers)
        if self.spoilt:
            self.spoilt_until = self.now
        noticed = max(each.notices_after for each in self.replicas)
        if self.now <= self.spoilt_until + noticed + longest:
            return
        for number, replica in enumerate(self.replicas):
            if replica.ready_since is None or replica.serving is None:
                continue
            if 0 < self.spoilt_until <= replica.cut_off_until and self.now <= replica.cut_off_until + longest:
                continue  # what it serves was taken out, and it could not know
            clock = self.now + replica.ahead
            if rotation.why_not_ready(replica.serving, (), now=clock, timing=self.timing) is not None:
                self._no_longer_ready(number)
                continue
            if replica.new and self.now <= replica.ready_since + longest:
                continue
            replica.new = False
            for server in self.servers:
                self.handshakes += 1
                wrong = self.fault(server, replica.serving)
                if wrong:
                    day = (self.now - START) / DAY
                    raise HandshakeError(f"day {day:.2f}: replica {number} with {replica.serving}: {wrong}")

    def fault(self, server: ApiServer, serving: Serving) -> str:
        clock = self.now + server.ahead
        if not serving.not_before <= clock < serving.not_after:
            return "its certificate is not valid"
        seen = next(at for at in range(len(self.history) - 1, -1, -1) if self.history[at][0] <= self.now - server.lag)
        distrusted_by = self._distrusted_by(seen, serving.issuer)
        if distrusted_by:
            return f"{distrusted_by} does not trust it {server.lag} s after"
        if not serving.issuer.not_before <= clock < serving.issuer.not_after:
            return "its authority is not valid"
        return ""

    def _distrusted_by(self, seen: int, issuer: Certificate) -> str:
        """Name the first target that lacked an authority at an index of the history, or return ""."""
        if (seen, issuer) not in self._found:
            self._found[seen, issuer] = next(
                (
                    f"{target} {name}"
                    for target, bundles in self.history[seen][1].items()
                    for name, bundle in bundles.items()
                    if issuer not in (bundle or ())
                ),
                "",
            )
        return self._found[seen, issuer]

    def settled(self) -> None:
        """Check that everything is as it should be once nothing has happened for long."""
        trusted = {each.fingerprint for each in self.held.trusted()}
        for bundles in self.bundles.values():
            for bundle in bundles.values():
                assert bundle is not None
                assert {each.fingerprint for each in bundle} == trusted
        assert len(trusted) <= 3
        assert all(each.ready_since is not None for each in self.replicas)


def user_authority(world: World, *, lifetime: float = 3650 * DAY) -> Authorities:
    """What somebody puts into the Secret who has an authority of his own."""
    return Authorities(world.authority(world.now - DAY, world.now + lifetime, "own"))
