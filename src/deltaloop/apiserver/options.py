"""How an embedded server runs: its options, checked when they are made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from deltaloop._internal.option_types import check_types
from deltaloop.api.redaction import SecretText
from deltaloop.api.times import utc_now
from deltaloop.apiserver.authentication import StaticUser, is_loopback
from deltaloop.apiserver.core.admission.plugins import NAMES as ADMISSION_PLUGINS
from deltaloop.apiserver.token_keys import checking_keys, signing_key

CONTROLLERS: Final = frozenset({"gc", "namespace", "volume-protection", "policy-status", "coordinated-leases"})
# What every cluster cleans up, for programs and tests that expect one.
CLUSTER_CONTROLLERS: Final = frozenset({"gc", "namespace", "volume-protection", "policy-status"})
_SERVICE: Final = re.compile(r"[^/:]+/[^/:]+(:[0-9]+)?")
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/@]+):[0-9]+")
AUTHORIZATION_MODES: Final = ("AlwaysAllow", "RBAC")


def _check_key(name: str, read: Callable[[bytes], object], key: SecretText) -> None:
    try:
        read(key.reveal().encode())
    except ValueError as error:
        raise ValueError(f"ServerOptions.{name} cannot be used: {error}") from None


def _check_plugins(enabled: frozenset[str], disabled: frozenset[str]) -> None:
    for verb, plugins in (("enable", enabled), ("disable", disabled)):
        if plugins - ADMISSION_PLUGINS:
            raise ValueError(
                f"ServerOptions.{verb}_admission_plugins has {sorted(plugins - ADMISSION_PLUGINS)}; known are "
                f"{sorted(ADMISSION_PLUGINS)}"
            )
    if enabled & disabled:
        raise ValueError(f"ServerOptions enables and disables the admission plugins {sorted(enabled & disabled)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How an embedded server runs.

    Attributes:
        host: Address to listen on: ``localhost`` or a loopback address, nothing else.
        port: TCP port; 0 takes a free one.
        insecure_http: Plain HTTP and no credentials: everybody on this machine may do everything.
        token: The bearer token of ``deltaloop:admin``, who is in ``system:masters``; None makes a random one, or takes
            the one that the data directory keeps. Not with ``insecure_http``.
        users: Other users, each with a token.
        service_account_key: The private key that tokens of service accounts are signed with, in PEM (RSA, or a curve of
            NIST); None makes one, or takes the one that the data directory keeps.
        accepted_service_account_keys: More keys whose tokens of service accounts are taken, in PEM: public ones,
            certificates or private ones. A controller manager that writes tokens into Secrets has such a key.
        authorization_mode: ``AlwaysAllow``: whoever has credentials may do everything. ``RBAC``: what roles and
            bindings allow; the usual first ones are made.
        controllers: What runs beside the server: ``gc`` (owner references), ``namespace`` (clean-up),
            ``volume-protection`` (finalizers of claims and volumes), ``policy-status`` (warnings about the expressions
            of ValidatingAdmissionPolicies) and ``coordinated-leases`` (KEP-4355). None by default, as in a
            kube-apiserver alone: dependents stay, a deleted namespace or claim stays Terminating, the status of
            policies stays empty, and candidates are not elected.
        enable_admission_plugins: Plugins that are on besides those that are on by default.
        disable_admission_plugins: Plugins that are off although they are on by default. Those are a real server's,
            but for ``ServiceAccount``, which refuses Pods without an account that a controller makes in a cluster.
        data_dir: Where objects and credentials are kept over restarts; None keeps everything in memory. It holds
            Secrets and the authority's key, so it is made readable by its owner only.
        fsync: Whether a write is on the disk before its answer. Without it, writes outlive the process, however it
            ends, but not a power failure.
        window: How many past changes are kept for watches, exact lists and continue tokens.
        window_bytes: How many bytes of objects these may hold.
        bookmark_interval: Seconds between bookmarks of a watch.
        audit: Takes a line of JSON for each request, called on the loop; None for none.
        webhook_services: Where the services of webhooks are, by ``namespace/name`` or ``namespace/name:port``:
            addresses such as ``127.0.0.1:9443``. No other service is reached. Certificates have to be for
            ``name.namespace.svc``.
        webhook_hosts: Hosts that URLs of webhooks may name besides ``localhost`` and loopback addresses.
        fault_seed: Of the chances of faults; None is another one each time.
        wall_clock: The time that objects get; must return aware datetimes.
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
        """Refuse what cannot work or is not safe.

        Raises:
            ValueError: Naming the field.
        """
        check_types(self)
        if not is_loopback(self.host):
            raise ValueError(
                f"ServerOptions.host is {self.host!r}; this server listens on 127.0.0.1, ::1 or localhost only"
            )
        if not 0 <= self.port <= 65535:
            raise ValueError(f"ServerOptions.port is {self.port!r}; 0 to 65535 is needed")
        unknown = self.controllers - CONTROLLERS
        if unknown:
            raise ValueError(f"ServerOptions.controllers has {sorted(unknown)}; known are {sorted(CONTROLLERS)}")
        _check_plugins(self.enable_admission_plugins, self.disable_admission_plugins)
        if self.token is not None and (self.insecure_http or not self.token):
            raise ValueError("ServerOptions.token must not be empty, and has no meaning with insecure_http")
        if self.authorization_mode not in AUTHORIZATION_MODES:
            known = " or ".join(AUTHORIZATION_MODES)
            raise ValueError(f"ServerOptions.authorization_mode is {self.authorization_mode!r}; {known} is needed")
        if self.insecure_http and (self.users or self.authorization_mode != "AlwaysAllow"):
            raise ValueError(
                "ServerOptions.users and RBAC have no meaning with insecure_http: nobody says who they are"
            )
        if self.service_account_key is not None:
            _check_key("service_account_key", signing_key, self.service_account_key)
        for place, key in enumerate(self.accepted_service_account_keys):
            _check_key(f"accepted_service_account_keys[{place}]", checking_keys, key)
        for service, address in self.webhook_services.items():
            if not _SERVICE.fullmatch(service) or not _ADDRESS.fullmatch(address):
                raise ValueError(
                    f"ServerOptions.webhook_services has {service!r}: {address!r}; "
                    "'namespace/name' or 'namespace/name:port' and 'host:port' are needed"
                )
        if self.fsync and self.data_dir is None:
            raise ValueError("ServerOptions.fsync needs data_dir")
        if self.window < 1 or self.window_bytes < 1:
            raise ValueError("ServerOptions.window and window_bytes must be 1 or more")
        if not self.bookmark_interval > 0:
            raise ValueError(f"ServerOptions.bookmark_interval is {self.bookmark_interval!r}; more than 0 is needed")
