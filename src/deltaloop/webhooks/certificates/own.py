"""Certificates with deltaloop's own authority in a Secret, and a separate certificate for each replica."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from deltaloop.api.status import AlreadyExistsError, ConflictError, ForbiddenError, InvalidError, NotFoundError
from deltaloop.api.times import format_time, from_epoch, parse_time, utc_now
from deltaloop.cache import HandlerFuncs, InformerFactory
from deltaloop.client import Client, PatchType, WriteOptions
from deltaloop.leaderelection.clock import boot_time
from deltaloop.webhooks.certificates import secret_form, signing
from deltaloop.webhooks.certificates.targets import TARGET_KINDS
from deltaloop.webhooks.core.certificates.authorities import Authorities, Authority, Certificate, CertificateTiming
from deltaloop.webhooks.core.certificates.rotation import (
    CertificateDecision,
    IssueServing,
    MakeAuthority,
    SecretSeen,
    SecretState,
    ServerClock,
    Serving,
    TargetSeen,
    WriteBundle,
    WriteSecret,
    decide,
    why_not_ready,
)
from deltaloop.webhooks.core.certificates.targets import (
    WebhookTarget,
    bundle_patch,
    bundles_of,
    is_managed_elsewhere,
)

_log: Final = logging.getLogger("deltaloop.webhooks")


@final
class WebhookBundles:
    """Reader and writer of ``caBundle`` in the given configurations."""

    def __init__(self, client: Client, targets: Sequence[WebhookTarget]) -> None:
        self._client = client
        self._targets = tuple(targets)
        self._read: dict[WebhookTarget, Mapping[str, Any]] = {}

    async def read(self) -> list[TargetSeen]:
        found: list[TargetSeen] = []
        for target in self._targets:
            obj = await self._client.find(TARGET_KINDS[target.kind], target.name)
            fields = obj.to_dict() if obj is not None else {}
            self._read[target] = fields
            bundles = {name: _certificates(pems) for name, pems in bundles_of(target, fields).items()}
            found.append(TargetSeen(target, bundles, managed_elsewhere=is_managed_elsewhere(fields)))
        return found

    async def write(self, write: WriteBundle) -> None:
        """Write certificates into an unchanged configuration, or raise InvalidError from the patch's test operation."""
        patch = bundle_patch(write.target, self._read[write.target], [each.pem for each in write.certificates])
        await self._client.patch(TARGET_KINDS[write.target.kind], write.target.name, patch, type=PatchType.JSON)
        _log.info("wrote caBundle", extra={"target": str(write.target), "certificates": len(write.certificates)})


def _certificates(pems: Sequence[str] | None) -> tuple[Certificate, ...] | None:
    if pems is None:
        return None
    try:
        return tuple(signing.read_certificate(pem) for pem in pems)
    except ValueError:
        return None


MANAGER: Final = "deltaloop-certificates"

_CLOCK_EVERY: Final = 86400.0
_CLOCK_ANNOTATION: Final = "webhooks.deltaloop.dev/clock"
_CLOCKS_DIFFER: Final = 60.0
_DRY: Final = WriteOptions(dry_run=True)


@final
class AuthoritySecret:
    """Reader and writer of one Secret. ``labels`` and ``owner`` are only used for a new Secret."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        owner: Mapping[str, Any] | None,
        clock: Callable[[], float],
        wall_clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._labels = labels
        self._owner = owner
        self._clock = clock
        self._server_clock = ServerClock(wall_clock().timestamp(), clock())
        self._clock_seen_at: float | None = None
        self._read: Resource | None = None

    def __str__(self) -> str:
        return f"{self._namespace}/{self._name}"

    def now(self) -> float:
        """Return the best estimate of the API server's time in seconds since 1970."""
        return self._server_clock.now(self._clock())

    async def read(self) -> SecretSeen:
        if self._clock_seen_at is None or self._clock() - self._clock_seen_at >= _CLOCK_EVERY:
            await self._look_at_the_clock(await self._find())
        asked_at = self.now()
        self._read = await self._find()
        if self._read is None:
            return SecretSeen(SecretState.MISSING, asked_at)
        fields = self._read.to_dict()
        if (held := secret_form.read_secret(fields)) is not None:
            return SecretSeen(SecretState.HELD, asked_at, held)
        return SecretSeen(SecretState.UNUSABLE if secret_form.is_ours(fields) else SecretState.FOREIGN, asked_at)

    async def write(self, held: Authorities) -> None:
        """Write unchanged authorities."""
        data = secret_form.to_data(held)
        if self._read is None:
            metadata: dict[str, Any] = {"labels": dict(self._labels), "annotations": {secret_form.MARK: "v1"}}
            if self._owner is not None:
                metadata["ownerReferences"] = [dict(self._owner)]
            await self._client.create(SECRET, self._new(metadata, data), namespace=self._namespace)
        else:
            fields: dict[str, Any] = self._read.to_dict()
            fields["metadata"].setdefault("annotations", {})[secret_form.MARK] = "v1"
            fields["data"] = data
            await self._client.update(SECRET, fields, namespace=self._namespace)
        _log.info(
            "the CAs of the webhook certificates changed",
            extra={
                "secret_name": str(self),
                "published": held.signer.published_at is not None,
                "successor": held.successor is not None,
                "former": len(held.former),
            },
        )

    async def _find(self) -> Resource | None:
        return await self._client.find(SECRET, self._name, namespace=self._namespace)

    def _new(self, metadata: Mapping[str, Any], data: Mapping[str, str]) -> dict[str, Any]:
        return {"metadata": {**metadata, "name": self._name}, "type": secret_form.TYPE, "data": data}

    async def _look_at_the_clock(self, secret: Resource | None) -> None:
        """Learn the server's time from the timestamp of a dry run."""
        now = self._clock()
        try:
            shown = await self._dry_run(secret, now)
        except (ConflictError, AlreadyExistsError, NotFoundError):
            return  # the next pass tries again
        except ForbiddenError:
            shown = None
        self._clock_seen_at = now
        if shown is None:
            return
        self._server_clock.seen(shown.timestamp(), now)
        if abs(self._server_clock.offset) > _CLOCKS_DIFFER:
            _log.warning(
                "the local clock differs from the clock of the API server, which certificates use",
                extra={"seconds": round(self._server_clock.offset)},
            )

    async def _dry_run(self, secret: Resource | None, now: float) -> datetime | None:
        if secret is None:
            empty: dict[str, Any] = {
                "metadata": {"name": self._name}
            }  # without a type, because the server warns about an empty TLS Secret
            made = await self._client.create(SECRET, empty, namespace=self._namespace, options=_DRY)
            return _time(made.to_dict()["metadata"].get("creationTimestamp"))
        fields: dict[str, Any] = secret.to_dict()
        fields["metadata"].setdefault("annotations", {})[_CLOCK_ANNOTATION] = str(now)
        changed = await self._client.update(SECRET, fields, namespace=self._namespace, options=_DRY)
        managers = changed.to_dict()["metadata"].get("managedFields", [])
        times = [_time(each.get("time")) for each in managers if each.get("manager") == MANAGER]
        return max((each for each in times if each is not None), default=None)


def _time(text: object) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except InvalidArgumentError:
        return None


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
                    "must not be empty, because the CA is stored in that Secret.",
                    argument=f"ManagedCertificateOptions.{name}",
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
                "cannot manage the webhook certificates, retrying",
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
                "the Secret for certificates contains unknown data; delete it, or use a different name",
                {"secret_name": str(self._secret)},
            )
        now, timing = self._secret.now(), self._options.timing
        return decide(seen, self._targets, self._serving, now=now, timing=timing, spare=spare)

    def _serve(self, issue: IssueServing) -> None:
        load_chain(self._context, signing.issue(issue.authority, issue.serving, self._options.hosts).reveal().encode())
        self._serving = issue.serving
        until = format_time(from_epoch(issue.serving.not_after))
        _log.info("using a new certificate", extra={"hosts": list(self._options.hosts), "valid_until": until})

    async def _written(self, kind: str, writing: Awaitable[None]) -> bool:
        """Return whether to read again. A missing permission is logged, and the other writes continue."""
        try:
            await writing
        except (ConflictError, NotFoundError, InvalidError) as error:
            # The object was changed or deleted. In a patch, a test operation failed.
            _log.debug("the object changed since it was read", extra={"kind": kind, "error": type(error).__name__})
        except ForbiddenError as error:
            self._tell_once(
                "missing permission to manage the webhook certificates; apply the output of `deltaloop generate rbac`",
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
