"""Options of the embedded server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from deltaloop._internal.option_types import check_types
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.redaction import SecretText
from deltaloop.api.times import utc_now
from deltaloop.apiserver.authentication import StaticUser, is_loopback
from deltaloop.apiserver.core.admission.plugins import NAMES as ADMISSION_PLUGINS
from deltaloop.apiserver.token_keys import checking_keys, signing_key

CONTROLLERS: Final = frozenset({"gc", "namespace", "volume-protection", "policy-status", "coordinated-leases"})
# Cleanup of every cluster, for programs and tests that expect it.
CLUSTER_CONTROLLERS: Final = frozenset({"gc", "namespace", "volume-protection", "policy-status"})
_SERVICE: Final = re.compile(r"[^/:]+/[^/:]+(:[0-9]+)?")
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/@]+):[0-9]+")
AUTHORIZATION_MODES: Final = ("AlwaysAllow", "RBAC")


def _check_key(name: str, read: Callable[[bytes], object], key: SecretText) -> None:
    try:
        read(key.reveal().encode())
    except ValueError as error:
        raise InvalidArgumentError(str(error), argument=f"ServerOptions.{name}") from None


def _check_plugins(enabled: frozenset[str], disabled: frozenset[str]) -> None:
    for verb, plugins in (("enable", enabled), ("disable", disabled)):
        if plugins - ADMISSION_PLUGINS:
            known, got = sorted(ADMISSION_PLUGINS), sorted(plugins - ADMISSION_PLUGINS)
            raise InvalidArgumentError(
                f"must be among {known}, got {got}.", argument=f"ServerOptions.{verb}_admission_plugins"
            )
    if enabled & disabled:
        problem = f"must not contain enabled plugins, got {sorted(enabled & disabled)}."
        raise InvalidArgumentError(problem, argument="ServerOptions.disable_admission_plugins")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options of an embedded server.

    Attributes:
        host: Address to listen on, ``localhost`` or a loopback address.
        port: TCP port. 0 selects a free port.
        insecure_http: Whether to use plain HTTP without credentials, so that all local users have all permissions.
        token: Bearer token of ``deltaloop:admin``, a member of ``system:masters``. None creates a random token or reads
            it from the data directory. Not allowed with ``insecure_http``.
        users: Additional users with tokens.
        service_account_key: Private key in PEM (RSA or a NIST curve) for service account tokens. None creates a key or
            reads it from the data directory.
        accepted_service_account_keys: Additional keys in PEM (public keys, certificates or private keys) for
            verification of service account tokens. For example, the key of a controller manager that writes tokens into
            Secrets.
        authorization_mode: ``AlwaysAllow`` grants all permissions to authenticated users. ``RBAC`` evaluates roles and
            bindings, and creates the initial roles.
        controllers: Controllers to run: ``gc`` (owner references), ``namespace`` (namespace deletion),
            ``volume-protection`` (finalizers of claims and volumes), ``policy-status`` (warnings about the expressions
            of ValidatingAdmissionPolicies) and ``coordinated-leases`` (KEP-4355). None of them by default, like a
            kube-apiserver without a controller manager: dependents stay, deleted namespaces and claims stay
            Terminating, the status of policies stays empty, and candidates are not elected.
        enable_admission_plugins: Plugins to enable in addition to the defaults.
        disable_admission_plugins: Default plugins to disable. The defaults are those of a real server except for
            ``ServiceAccount``, which rejects Pods without a service account that a controller creates in a cluster.
        data_dir: Directory for objects and credentials. None keeps all data in memory. It contains Secrets and the CA's
            key, so only its owner can read it.
        fsync: Whether a write is on disk before its response. Without it, writes survive a crash of the process but not
            a power failure.
        window: Number of past changes for watches, exact lists and continue tokens.
        window_bytes: Maximum size of these changes in bytes.
        bookmark_interval: Interval between bookmarks of a watch in seconds.
        audit: Function that receives a JSON line per request on the event loop. None to disable the audit log.
        webhook_services: Addresses of webhook services such as ``127.0.0.1:9443``, by ``namespace/name`` or
            ``namespace/name:port``. Other services are unreachable. Certificates must be valid for
            ``name.namespace.svc``.
        webhook_hosts: Hosts that webhook URLs can use in addition to ``localhost`` and loopback addresses.
        fault_seed: Random seed of injected faults. None for a random seed.
        wall_clock: Function that returns the time of objects as an aware datetime.

    Raises:
        ValueError: If an option is invalid or options conflict.
    """

    host: str = "127.0.0.1"
    port: int = 0
    insecure_http: bool = False
    token: SecretText | None = None
    users: tuple[StaticUser, ...] = ()
    service_account_key: SecretText | None = None
    accepted_service_account_keys: tuple[SecretText, ...] = ()
    authorization_mode: str = "AlwaysAllow"
    controllers: frozenset[str] = frozenset()
    enable_admission_plugins: frozenset[str] = frozenset()
    disable_admission_plugins: frozenset[str] = frozenset()
    data_dir: Path | None = None
    fsync: bool = False
    window: int = 10_000
    window_bytes: int = 64 * 1024 * 1024
    bookmark_interval: float = 60.0
    audit: Callable[[str], None] | None = field(default=None, repr=False)
    webhook_services: Mapping[str, str] = field(default_factory=dict[str, str])
    webhook_hosts: frozenset[str] = frozenset()
    fault_seed: int | None = None
    wall_clock: Callable[[], datetime] = field(default=utc_now, repr=False)

    def __post_init__(self) -> None:
        check_types(self)
        if not is_loopback(self.host):
            problem = f"must be 127.0.0.1, ::1 or localhost, got {self.host!r}."
            raise InvalidArgumentError(problem, argument="ServerOptions.host")
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"must be 0 to 65535, got {self.port!r}.", argument="ServerOptions.port")
        unknown = self.controllers - CONTROLLERS
        if unknown:
            problem = f"must be among {sorted(CONTROLLERS)}, got {sorted(unknown)}."
            raise InvalidArgumentError(problem, argument="ServerOptions.controllers")
        _check_plugins(self.enable_admission_plugins, self.disable_admission_plugins)
        if self.token is not None and (self.insecure_http or not self.token):
            problem = "must not be empty, and cannot be combined with insecure_http."
            raise InvalidArgumentError(problem, argument="ServerOptions.token")
        if self.authorization_mode not in AUTHORIZATION_MODES:
            known = " or ".join(AUTHORIZATION_MODES)
            problem = f"must be {known}, got {self.authorization_mode!r}."
            raise InvalidArgumentError(problem, argument="ServerOptions.authorization_mode")
        if self.insecure_http and (self.users or self.authorization_mode != "AlwaysAllow"):
            problem = "cannot be combined with users or RBAC, because plain HTTP has no authentication."
            raise InvalidArgumentError(problem, argument="ServerOptions.insecure_http")
        if self.service_account_key is not None:
            _check_key("service_account_key", signing_key, self.service_account_key)
        for place, key in enumerate(self.accepted_service_account_keys):
            _check_key(f"accepted_service_account_keys[{place}]", checking_keys, key)
        for service, address in self.webhook_services.items():
            if not _SERVICE.fullmatch(service) or not _ADDRESS.fullmatch(address):
                problem = f"must map 'namespace/name[:port]' to 'host:port', got {service!r}: {address!r}."
                raise InvalidArgumentError(problem, argument="ServerOptions.webhook_services")
        if self.fsync and self.data_dir is None:
            raise InvalidArgumentError("requires data_dir.", argument="ServerOptions.fsync")
        if self.window < 1 or self.window_bytes < 1:
            raise InvalidArgumentError("and window_bytes must be >= 1.", argument="ServerOptions.window")
        if not self.bookmark_interval > 0:
            problem = f"must be > 0, got {self.bookmark_interval!r}."
            raise InvalidArgumentError(problem, argument="ServerOptions.bookmark_interval")
