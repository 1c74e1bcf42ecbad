"""Certificates with deltaloop's own authority in a Secret, and a separate certificate for each replica.

A pass carries out the decision of ``core.certificates.rotation`` after changes and at regular intervals.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, final

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing.checks import require_positive
from deltaloop._internal.x509_certificates import load_chain, server_context
from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.kinds import SECRET
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.api.status import ConflictError, ForbiddenError, InvalidError, NotFoundError
from deltaloop.api.times import format_time, from_epoch, utc_now
from deltaloop.cache import HandlerFuncs, InformerFactory
from deltaloop.client import Client
from deltaloop.leaderelection.clock import boot_time
from deltaloop.webhooks.certificates import signing
from deltaloop.webhooks.certificates.authority_secret import MANAGER, AuthoritySecret
from deltaloop.webhooks.certificates.targets import TARGET_KINDS
from deltaloop.webhooks.certificates.webhook_bundles import WebhookBundles
from deltaloop.webhooks.core.certificates.authorities import Authority, CertificateTiming
from deltaloop.webhooks.core.certificates.rotation import (
    CertificateDecision,
    IssueServing,
    MakeAuthority,
    SecretSeen,
    SecretState,
    Serving,
    TargetSeen,
    WriteSecret,
    decide,
    why_not_ready,
)
from deltaloop.webhooks.core.certificates.targets import WebhookTarget

_log: Final = logging.getLogger("deltaloop.webhooks")

_MOST_STEPS: Final = 8  # per pass, the next pass continues


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedCertificateOptions:
    """Options of ``ManagedCertificates``.

    Attributes:
        namespace: Namespace of the Secret.
        secret: Name of the Secret.
        hosts: DNS names and addresses for the certificates: those of the Service, or the host of the URLs.
        targets: Configurations whose ``caBundle`` is written.
        labels: Labels for a new Secret.
        owner: Owner reference for a new Secret, for example to the program's Deployment.
        timing: Lifetimes of the certificates.
        resync: Interval in seconds after which the Secret and the configurations are read without an event.
        retry: Delay in seconds after an error.

    Raises:
        InvalidArgumentError: If an option is invalid.
    """

    namespace: str
    secret: str
    hosts: tuple[str, ...]
    targets: tuple[WebhookTarget, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    owner: Mapping[str, Any] | None = None
    timing: CertificateTiming = field(default_factory=CertificateTiming)
    resync: float = 600.0
    retry: float = 5.0

    def __post_init__(self) -> None:
        check_types(self)
        for name, value in (("namespace", self.namespace), ("secret", self.secret)):
            if not value:
                raise InvalidArgumentError(
                    f"ManagedCertificateOptions.{name} is empty; the authority is in that Secret"
                )
        signing.check_hosts(self.hosts)
        require_positive("ManagedCertificateOptions", resync=self.resync, retry=self.retry)


@final
class ManagedCertificates:
    """Certificate source that manages an authority and ``caBundle`` together with the other replicas.

    Every replica runs a server, whether or not it leads. Keys never appear in logs, ``repr`` or errors.

    Args:
        client: Client for the Secret and the configurations.
        options: Names, hosts and lifetimes.
        clock: Monotonic clock in seconds.
        wall_clock: Clock of this machine, which is used until the server's time is known.
        random: Function that returns random numbers in [0, 1), to spread the passes.

    Raises:
        MissingExtraError: If the extra ``webhooks`` is not installed.
    """

    def __init__(
        self,
        client: Client,
        options: ManagedCertificateOptions,
        *,
        clock: Callable[[], float] = boot_time,
        wall_clock: Callable[[], datetime] = utc_now,
        random: Callable[[], float] = random.random,
    ) -> None:
        signing.require_cryptography()
        self._client = client.with_field_manager(MANAGER)
        self._options = options
        self._random = random
        self._secret = AuthoritySecret(
            self._client,
            namespace=options.namespace,
            name=options.secret,
            labels=options.labels,
            owner=options.owner,
            clock=clock,
            wall_clock=wall_clock,
        )
        self._bundles = WebhookBundles(self._client, options.targets)
        self._context = server_context()
        self._serving: Serving | None = None
        self._targets: list[TargetSeen] | None = None
        self._changed = asyncio.Event()
        self._told: set[str] = set()

    def __repr__(self) -> str:
        return f"<ManagedCertificates in Secret {self._options.namespace}/{self._options.secret}>"

    @property
    def serving(self) -> Serving | None:
        """Active certificate, or None before the first."""
        return self._serving

    @property
    def valid_until(self) -> float | None:
        """Expiry of the active certificate in seconds since 1970, or None before the first."""
        return None if self._serving is None else self._serving.not_after

    def context(self) -> ssl.SSLContext:
        """Return the TLS context to listen with, whose certificate changes between handshakes."""
        return self._context

    def not_ready(self) -> str:
        """Return why the server cannot receive requests yet, or an empty string if it can."""
        reason = why_not_ready(self._serving, self._targets, now=self._secret.now(), timing=self._options.timing)
        return "" if reason is None else reason.value

    async def run(self) -> None:
        """Keep the certificates valid until cancelled."""
        async with InformerFactory(self._client) as factory:
            self._listen(factory)
            while True:
                self._changed.clear()
                wait = await self.make_pass()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._changed.wait()

    async def make_pass(self) -> float:
        """Make one pass and return the delay in seconds until the next pass."""
        try:
            for _ in range(_MOST_STEPS):
                decision, go_on = await self._step()
                if not go_on:
                    return min(self._spread(self._options.resync), max(0.0, decision.wake_at - self._secret.now()))
        except Exception as error:  # noqa: BLE001 - certificates must be renewed in time despite any error
            expected = isinstance(error, DeltaloopError | OSError)
            _log.warning(
                "certificates of webhooks could not be looked after; trying again",
                extra={"error": type(error).__name__, "reason": redact(str(error))},
                exc_info=None if expected else error,
            )
        return self._spread(self._options.retry)

    # -- one pass

    async def _step(self) -> tuple[CertificateDecision, bool]:
        """Read, decide and act. Return the decision and whether to read again because of a write."""
        seen = await self._secret.read()
        self._targets = await self._bundles.read()
        decision = self._decide(seen)
        if isinstance(decision.secret, MakeAuthority):
            spare = signing.make_authority(
                decision.secret,
                name=f"{self._options.secret}.{self._options.namespace} webhooks",
                serving_lifetime=self._options.timing.serving_lifetime,
            )
            decision = self._decide(seen, spare)
        if decision.issue is not None:
            self._serve(decision.issue)
        written = False
        if isinstance(decision.secret, WriteSecret):
            written = await self._written("Secret", self._secret.write(decision.secret.held))
        for write in decision.bundles:
            written |= await self._written(write.target.kind.value, self._bundles.write(write))
        return decision, written

    def _decide(self, seen: SecretSeen, spare: Authority | None = None) -> CertificateDecision:
        if seen.state is SecretState.FOREIGN:
            self._tell_once(
                "the Secret for certificates holds something else and is left alone: delete it, or name another one",
                {"secret_name": str(self._secret)},
            )
        now, timing = self._secret.now(), self._options.timing
        return decide(seen, self._targets, self._serving, now=now, timing=timing, spare=spare)

    def _serve(self, issue: IssueServing) -> None:
        load_chain(self._context, signing.issue(issue.authority, issue.serving, self._options.hosts).reveal().encode())
        self._serving = issue.serving
        until = format_time(from_epoch(issue.serving.not_after))
        _log.info("serving a new certificate", extra={"hosts": list(self._options.hosts), "valid_until": until})

    async def _written(self, kind: str, writing: Awaitable[None]) -> bool:
        """Return whether to read again. A missing permission is logged, and the other writes continue."""
        try:
            await writing
        except (ConflictError, NotFoundError, InvalidError) as error:
            # The object was changed or deleted. In a patch, a test operation failed.
            _log.debug("what was read has changed", extra={"kind": kind, "error": type(error).__name__})
        except ForbiddenError as error:
            self._tell_once(
                "cannot keep the certificates of webhooks without a right: `deltaloop generate rbac` prints it",
                {"kind": kind, "reason": redact(str(error))},
            )
            return False
        return True

    # -- hints

    def _listen(self, factory: InformerFactory) -> None:
        """Start a pass when a watched object changes. Only metadata is watched."""
        handlers = HandlerFuncs[Resource](
            on_add=self._hear, on_update=lambda _, new: self._hear(new), on_delete=self._hear
        )
        options = self._options
        watched = [(SECRET, options.secret), *((TARGET_KINDS[each.kind], each.name) for each in options.targets)]
        for kind, name in watched:
            place = options.namespace if kind is SECRET else None
            selector = f"metadata.name={name}"
            informer = factory.informer(kind, namespace=place, field_selector=selector, metadata_only=True)
            informer.add_event_handler(handlers)

    def _hear(self, _: object) -> None:
        self._changed.set()

    def _spread(self, seconds: float) -> float:
        return seconds * (1 - self._random() / 5)

    def _tell_once(self, message: str, extra: Mapping[str, object]) -> None:
        if (key := f"{message} {extra}") not in self._told:
            self._told.add(key)
            _log.error(message, extra=dict(extra))
