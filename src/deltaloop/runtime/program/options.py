"""Options of ``dl.run``. The flags of ``deltaloop run``, their help and their documentation are made from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from string import Formatter
from typing import Any, Final, TypeAlias

from deltaloop._internal.option_types import check_types
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.client.client import Client
from deltaloop.events.core.draft import EventApi
from deltaloop.leaderelection.config import LeaderElectionConfig
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.object_names import (
    NAME_RULE,
    NAMESPACE_RULE,
    WEBHOOK_URL_RULE,
    is_name,
    is_namespace,
    is_webhook_url,
)
from deltaloop.webhooks.server_options import WebhookServerOptions

DEFAULT_METRICS: Final = "127.0.0.1:8080"
DEFAULT_HEALTH: Final = "127.0.0.1:8081"
FilePath: TypeAlias = str | PathLike[str]
HEADINGS: Final = {
    "kubeconfig": "Cluster",
    "embedded": "Embedded server",
    "leader_elect": "Leader election",
    "shards": "Shards",
    "metrics_bind_address": "Metrics and health",
    "webhook_bind_address": "Webhooks",
    "drain_timeout": "Shutdown",
    "preflight": "Permissions",
}
"""Headings in the help of ``deltaloop run`` by the first option below each."""


class RunOptionError(InvalidArgumentError):
    """An option of ``dl.run`` has an invalid value, or does not fit another option.

    Attributes:
        options: Names of the options.
    """

    def __init__(self, problem: str, **values: object) -> None:
        """Keep the problem: a format string with names of options and of values."""
        self.options: tuple[str, ...] = tuple(
            dict.fromkeys(name for _, name, _, _ in Formatter().parse(problem) if name in _NAMES)
        )
        self._problem = problem
        self._values = values
        super().__init__(self.described(lambda option: f"RunOptions.{option}"))

    def described(self, name_of: Callable[[str], str]) -> str:
        """Return the message with other names of the options, such as flags."""
        return self._problem.format_map({**{option: name_of(option) for option in self.options}, **self._values})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of ``run``, each of which is also a flag of ``deltaloop run``; times are in seconds.

    Attributes:
        kubeconfig: Kubeconfig file. Defaults to KUBECONFIG, ~/.kube/config, or the service account of the pod.
        context: Context in the kubeconfig. Defaults to the current context.
        namespace: Namespace to watch. Defaults to all namespaces.
        event_api: API for Events. ``events.k8s.io/v1`` combines repeated Events into a series.
        embedded: Whether to run against an embedded API server, which stops with the program.
        rbac: Whether to grant the program only the roles that ``deltaloop generate rbac`` prints. Requires
            ``embedded``.
        load: File or folder of manifests, for example CRDs, to load into the embedded server. Repeatable. Requires
            ``embedded``.
        write_kubeconfig: File for the kubeconfig of the embedded server, removed at the end. Requires ``embedded``.
        leader_elect: Whether to reconcile only while this replica holds a Lease. Standbys keep their caches warm.
        leader_election_id: Name of the Lease. Defaults to the names of the controllers.
        leader_election_namespace: Namespace of the Lease. Defaults to the namespace of the kubeconfig or the pod.
        identity: Name of this replica in the Lease. Defaults to the host name with a random suffix.
        lease_duration: Time in seconds that standbys wait after the last renewal before they take over.
        renew_deadline: Time in seconds after which the leader stops if it cannot renew the Lease.
        retry_period: Time in seconds between two attempts to acquire or renew the Lease.
        shards: Whether replicas share the objects. Each reconciles and caches its share, and is named by a Lease. The
            options of the leader election apply to these Leases.
        shard_by_name: Whether objects of one namespace can belong to different members. Each member then receives all
            changes. Requires ``shards``.
        shard_by_label: Key of a label. Objects with the same value belong to one member, and without it, those of a
            namespace. Each member receives all changes. Requires ``shards``.
        processes: Number of processes on this machine that share the objects. More than 1 includes ``shards``. Health,
            metrics and /explain of all processes have one address.
        metrics_bind_address: Address of /metrics, for example 0.0.0.0:8080, or 0 to disable it.
            Defaults to 127.0.0.1:8080 if the extra ``metrics`` is installed.
        health_probe_bind_address: Address of /healthz, /readyz, /explain and /doctor, or 0 to disable it.
        doctor_actions: Allow ``deltaloop doctor`` to reconcile keys, retry parked keys, and pause controllers.
        metrics_cert: TLS certificate for /metrics, in PEM format. Requires ``metrics_key``.
        metrics_key: Private key of the certificate for /metrics, in PEM format. Requires ``metrics_cert``.
        metrics_token_review: Whether to serve /metrics only to clients with a bearer token that RBAC permits to get
            /metrics. Requires ``metrics_cert``.
        webhook_bind_address: Address of the webhook server, or 0 to disable it.
        webhook_name: Name of the webhook configurations. The Secret is called NAME-webhooks. Defaults to the name of
            the module.
        webhook_service: Name of the Service for the webhooks. Defaults to NAME-webhooks.
        webhook_url: URL at which the cluster reaches the webhooks if there is no Service, for example
            https://10.0.0.5:9443.
        webhook_cert_dir: Folder with tls.crt and tls.key for the webhooks, managed by another tool such as
            cert-manager. By default the program creates and renews its certificates.
        webhook_client_ca: CA certificates in PEM format. Webhook clients must present a certificate that one of these
            CAs signed.
        webhook_grace: Time in seconds for which webhooks are still served after the shutdown has begun.
        drain_timeout: Time in seconds for running reconciles to finish before they are canceled.
        shutdown_timeout: Timeout for the whole shutdown in seconds.
        preflight: Whether to check before the start that the account has the permissions that the controllers need.
        record: File to record a trace of all reconciles with causes and writes, in the format of Chrome traces. At most
            two files of 32 MiB exist.
        record_access: File to record the requests of this run for ``deltaloop generate rbac --from``.
    """

    kubeconfig: FilePath | None = None
    context: str | None = None
    namespace: str | None = None
    event_api: EventApi = EventApi.CORE_V1
    embedded: bool = False
    rbac: bool = False
    load: tuple[FilePath, ...] = ()
    write_kubeconfig: FilePath | None = None
    leader_elect: bool = False
    leader_election_id: str | None = None
    leader_election_namespace: str | None = None
    identity: str | None = None
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    shards: bool = False
    shard_by_name: bool = False
    shard_by_label: str | None = None
    processes: int = 1
    metrics_bind_address: str | None = None
    health_probe_bind_address: str = DEFAULT_HEALTH
    doctor_actions: bool = False
    metrics_cert: FilePath | None = None
    metrics_key: FilePath | None = None
    metrics_token_review: bool = False
    webhook_bind_address: str = ":9443"
    webhook_name: str | None = None
    webhook_service: str | None = None
    webhook_url: str | None = None
    webhook_cert_dir: FilePath | None = None
    webhook_client_ca: FilePath | None = None
    webhook_grace: float = 5.0
    drain_timeout: float = 20.0
    shutdown_timeout: float = 30.0
    preflight: bool = True
    record: FilePath | None = None
    record_access: FilePath | None = None

    def __post_init__(self) -> None:
        """Reject invalid values before a connection is opened.

        Raises:
            OptionTypeError: If a value has the wrong type.
            RunOptionError: If a value is invalid, or two options do not fit together.
        """
        check_types(self)
        self._check_cluster()
        self._check_shards()
        for valid, rule, options in _RULES:
            for option in options:
                if (value := getattr(self, option)) not in (None, "") and not valid(value):
                    raise RunOptionError(f"{{{option}}} must be {rule}, got {{got!r}}.", got=value)
        if (self.metrics_cert is None) != (self.metrics_key is None):
            raise RunOptionError("{metrics_cert} and {metrics_key} must be set together. Add the missing option.")
        if self.metrics_token_review and self.metrics_cert is None:
            raise RunOptionError(
                "{metrics_token_review} requires {metrics_cert} and {metrics_key}, because tokens must not travel "
                "unencrypted."
            )
        try:
            election_timing(self)
        except ValueError as error:
            raise RunOptionError(
                "{lease_duration}, {renew_deadline} and {retry_period} are not compatible: {cause}", cause=error
            ) from None

    def _check_cluster(self) -> None:
        for option in ("rbac", "load", "write_kubeconfig"):
            if getattr(self, option) and not self.embedded:
                raise RunOptionError(f"{{{option}}} requires {{embedded}}. Add {{embedded}}, or remove {{{option}}}.")
        for option in ("kubeconfig", "context"):
            if getattr(self, option) and self.embedded:
                raise RunOptionError(f"{{embedded}} and {{{option}}} cannot be combined. Use one of them.")

    def _check_shards(self) -> None:
        if self.processes < 1:
            raise RunOptionError("{processes} must be >= 1, got {got}.", got=self.processes)
        if self.leader_elect and is_sharded(self):
            raise RunOptionError("{leader_elect} must not be combined with {shards}. Omit {leader_elect}.")
        for option in ("shard_by_name", "shard_by_label"):
            if getattr(self, option) and not is_sharded(self):
                raise RunOptionError(f"{{{option}}} requires {{shards}}. Add {{shards}}.")
        if self.shard_by_name and self.shard_by_label:
            raise RunOptionError("{shard_by_name} must not be combined with {shard_by_label}. Omit {shard_by_name}.")
        for option in ("rbac", "record_access") if self.processes > 1 else ():
            if getattr(self, option):
                raise RunOptionError(f"{{{option}}} requires one process. Omit {{processes}}.")


_NAMES: Final = frozenset(each.name for each in fields(RunOptions))


def election_timing(options: RunOptions) -> LeaderElectionConfig:
    return LeaderElectionConfig(
        lease_duration=options.lease_duration,
        renew_deadline=options.renew_deadline,
        retry_period=options.retry_period,
    )


def is_sharded(options: RunOptions) -> bool:
    """Return whether several processes share the objects."""
    return options.shards or options.processes > 1


def lease_namespace(options: RunOptions, client: Client) -> str | None:
    """Return the namespace of the Leases; None without leader election and shards."""
    if not options.leader_elect and not is_sharded(options):
        return None
    return options.leader_election_namespace or client.namespace


def metrics_address(options: RunOptions) -> BindAddress | None:
    """Return where metrics are served; None if they are disabled."""
    return BindAddress.parse(
        options.metrics_bind_address or DEFAULT_METRICS,
        certificate=_path(options.metrics_cert),
        key=_path(options.metrics_key),
        token_review=options.metrics_token_review,
    )


def webhook_server_options(options: RunOptions) -> WebhookServerOptions | None:
    """Return where webhooks are served; None if they are disabled."""
    listen = WebhookServerOptions.parse(options.webhook_bind_address or "0")
    if listen is None:
        return None
    return listen.replace(client_ca=_path(options.webhook_client_ca), grace=options.webhook_grace)


def _path(given: FilePath | None) -> Path | None:
    return None if given is None else Path(given)


def _is_address(address: str) -> bool:
    try:
        BindAddress.parse(address)
    except InvalidArgumentError:
        return False
    return True


_RULES: Final[tuple[tuple[Callable[[Any], bool], str, tuple[str, ...]], ...]] = (
    (is_namespace, NAMESPACE_RULE, ("namespace", "leader_election_namespace")),
    (is_name, NAME_RULE, ("leader_election_id", "webhook_name", "webhook_service")),
    (lambda key: not label_key_problems(key), "the key of a label", ("shard_by_label",)),
    (
        _is_address,
        "HOST:PORT, :PORT for all interfaces, or 0 to disable it",
        ("metrics_bind_address", "health_probe_bind_address", "webhook_bind_address"),
    ),
    (is_webhook_url, WEBHOOK_URL_RULE, ("webhook_url",)),
    (
        lambda seconds: seconds >= 0 and math.isfinite(seconds),
        "a finite number of seconds >= 0",
        ("webhook_grace", "drain_timeout", "shutdown_timeout"),
    ),
)
