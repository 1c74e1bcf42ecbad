"""Embedded API server: sockets, TLS, users and controllers.

It runs on the event loop that enters it, and listens on loopback only.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import logging
import os
import random
import ssl
import uuid
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, final

from aiohttp import web

from deltaloop.api import kinds
from deltaloop.api.redaction import SecretText
from deltaloop.api.resource import Resource
from deltaloop.apiserver import connections
from deltaloop.apiserver.access import AccessHandlers
from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.authentication import ADMIN, Authenticator
from deltaloop.apiserver.builtin_tables import bootstrap_policy, built_in, flow_control
from deltaloop.apiserver.change_signal import WHILE_DELETING, ChangeSignal
from deltaloop.apiserver.conversions import Conversions
from deltaloop.apiserver.core.access.rbac import AlwaysAllow, RbacAuthorizer
from deltaloop.apiserver.core.access.service_tokens import LAST_USED, day_of_use
from deltaloop.apiserver.core.admission.plugins import chain_of
from deltaloop.apiserver.core.controllers.custom_resources import InstanceDeletion
from deltaloop.apiserver.core.controllers.first_objects import make_first_objects, make_observed, make_own_service
from deltaloop.apiserver.core.controllers.manifests import Manifest, in_order, load_manifest
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.storage.history import StoredChange
from deltaloop.apiserver.core.storage.store import RevisionStore, StoreState
from deltaloop.apiserver.core.strategy import Moment, Strategy
from deltaloop.apiserver.core.wire.incoming import Incoming, Outgoing
from deltaloop.apiserver.core.writes.crd_lifecycle import CRDS
from deltaloop.apiserver.core.writes.patch import patch
from deltaloop.apiserver.core.writes.server_state import ServerState
from deltaloop.apiserver.credentials import ServerCredentials, credentials_of, new_token
from deltaloop.apiserver.direct_connections import DirectDoor
from deltaloop.apiserver.errors import ServerStartError
from deltaloop.apiserver.filters import Filters
from deltaloop.apiserver.handlers import Handlers
from deltaloop.apiserver.injected_faults import Faults
from deltaloop.apiserver.large_writes import LargeWrites
from deltaloop.apiserver.options import ServerOptions
from deltaloop.apiserver.tls import IssuedCertificate
from deltaloop.apiserver.webhook_client import WebhookClient

# Import rarely used modules only when they are needed, because they would double the start time of other servers.
if TYPE_CHECKING:
    from deltaloop.apiserver.controllers import RunController
    from deltaloop.apiserver.persistence import DataFile

_log: Final = logging.getLogger("deltaloop.apiserver")
_STOP_PATIENCE: Final = 5.0
_NAME: Final = "deltaloop"
_HTTPS: Final = 443
"""Port of the server's own Service until it listens."""


@final
class ApiServer:
    """Embedded API server that runs while its context is entered.

    Leaving the context ends open watches cleanly, closes the sockets and waits for running requests. After a
    cancellation, the sockets are closed as well.
    """

    def __init__(self, options: ServerOptions | None = None, *, begins_with: StoreState | None = None) -> None:
        """Create a server that is not running yet.

        Args:
            options: Options of the server.
            begins_with: Initial objects from ``first_objects`` of another server. None creates them. Ignored with a
                data directory.
        """
        self._options = options or ServerOptions()
        self._begins_with = begins_with if self._options.data_dir is None else None
        self._store = RevisionStore(window=self._options.window, window_bytes=self._options.window_bytes)
        admission = chain_of(self._options.enable_admission_plugins, self._options.disable_admission_plugins)
        self._state = ServerState(self._store, _registry(self._options), admission)
        self._incoming = Incoming()
        self._webhooks = WebhookClient(self._options.webhook_services, self._options.webhook_hosts, self._incoming)
        self._conversions = Conversions(self._webhooks)
        self._large_writes = LargeWrites(self._state, answer=self._webhooks.answer)
        self._signal = ChangeSignal(self._store, stride=max(1, self._options.window // 4))
        self._faults = Faults(self._store, seed=self._options.fault_seed, restart=self._restart)
        self._token = self._options.token
        if self._token is None and not self._options.insecure_http and self._options.data_dir is None:
            self._token = new_token()
        self._outgoing = Outgoing()
        self._credentials: ServerCredentials | None = None
        self._random = random.SystemRandom()
        self._file: DataFile | None = None
        self._filters: Filters | None = None
        self._context: ssl.SSLContext | None = None
        self._runner: web.ServerRunner | None = None
        self._controllers: list[asyncio.Task[None]] = []
        self._door: DirectDoor | None = None
        self._port = 0
        self._entered = False
        self._running = False

    def __repr__(self) -> str:
        where = self.url if self._running else "not running"
        return f"<ApiServer {where}, {self._store!r}>"

    @property
    def url(self) -> str:
        """URL, for example ``https://127.0.0.1:41234``.

        Raises:
            RuntimeError: If the server is not running.
        """
        if not self._running:
            raise RuntimeError("the server has no URL before it runs. Use `async with server:`.")
        scheme = "http" if self._options.insecure_http else "https"
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"{scheme}://{host}:{self._port}"

    @property
    def ca_pem(self) -> bytes | None:
        """CA certificate in PEM. None with plain HTTP and before the server runs."""
        authority = self._credentials.authority if self._credentials is not None else None
        return authority.ca_pem if authority is not None else None

    @property
    def token(self) -> SecretText:
        """Bearer token of ``deltaloop:admin``; empty with plain HTTP and before the data directory was read."""
        return self._token or SecretText("")

    @property
    def revision(self) -> int:
        """Revision of the last write."""
        return self._store.revision

    @property
    def options(self) -> ServerOptions:
        """Options of the server."""
        return self._options

    def has_changed(self, resource: str, *, after: int) -> bool:
        """Return whether a resource was written after a revision; True if the history is incomplete.

        Args:
            resource: Resource such as ``configmaps`` or ``deployments.apps``.
            after: Revision, which is the resource version of a list or watch.
        """
        return self._store.has_changed(resource, after=after)

    def revisions_of(self, resources: Container[str]) -> tuple[int, ...]:
        """Return the known revisions of writes to some resources, oldest first.

        Args:
            resources: Resources such as ``configmaps`` or ``deployments.apps``.
        """
        return self._store.revisions_of(resources)

    def changes_of(self, resource: str, *, after: int) -> tuple[StoredChange, ...]:
        """Return the known changes of a resource after a revision, oldest first.

        Args:
            resource: Resource such as ``configmaps`` or ``deployments.apps``.
            after: Revision, which is the resource version of a list or watch.
        """
        return self._store.changes_of(resource, after=after)

    @property
    def faults(self) -> Faults:
        """Fault injection of this server."""
        return self._faults

    def issue_certificate(self, user: str, *groups: str) -> IssuedCertificate:
        """Issue a client certificate for a user in the given groups.

        Raises:
            RuntimeError: If the server is not running, or uses plain HTTP.
        """
        authority = self._credentials.authority if self._credentials is not None else None
        if authority is None:
            raise RuntimeError("the server has no CA, because it does not run or serves plain HTTP")
        return authority.issue(user, groups)

    def door(self) -> DirectDoor:
        """Return the entry point for requests from the same event loop while the server listens.

        Raises:
            ConnectionRefusedError: If the server does not listen.
        """
        if self._door is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        return self._door

    def kubeconfig(
        self, *, certificate: IssuedCertificate | None = None, token: SecretText | None = None
    ) -> dict[str, Any]:
        """Return a kubeconfig with one context, ``deltaloop``, which contains credentials in plain text.

        Args:
            certificate: Client certificate to use instead of a token (``issue_certificate``).
            token: Token to use, for example of another user. None for the server's own token.

        Raises:
            RuntimeError: If the server is not running.
        """
        cluster: dict[str, Any] = {"server": self.url}
        user: dict[str, Any] = {}
        if self.ca_pem is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca_pem).decode()
        used = token or self._token
        if certificate is not None:
            user["client-certificate-data"] = base64.b64encode(certificate.certificate_pem).decode()
            user["client-key-data"] = base64.b64encode(certificate.key_pem).decode()
        elif used is not None:
            user["token"] = used.reveal()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": _NAME,
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": _NAME, "user": user}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        }

    def admin_certificate(self) -> IssuedCertificate:
        """Issue a client certificate for ``deltaloop:admin``.

        Raises:
            RuntimeError: If the server is not running, or uses plain HTTP.
        """
        return self.issue_certificate(ADMIN.name, *(group for group in ADMIN.groups))

    def load(self, manifests: Iterable[Manifest]) -> int:
        """Create objects or merge manifests into existing objects, and return their number.

        Namespaces and CRDs are loaded first, and the resources of CRDs are served when this returns. Use
        ``read_manifests`` to read files.

        Raises:
            RuntimeError: If the server is not running.
            ManifestError: If a manifest is rejected. Earlier manifests stay loaded.
        """
        if not self._running:
            raise RuntimeError("the server does not run. Use `async with server:`.")
        ordered = in_order(manifests)
        try:
            for manifest in ordered:
                load_manifest(self._state, manifest, moment=self._moment())
        finally:
            self._signal.publish()
        return len(ordered)

    def route_service(self, service: str, address: str) -> None:
        """Set the address of a webhook service, like ``ServerOptions.webhook_services`` at the start.

        Args:
            service: ``namespace/name``, or ``namespace/name:port``.
            address: Address such as ``127.0.0.1:9443``. Empty for a Service without endpoints.
        """
        self._webhooks.services[service] = address

    def compact(self, revision: int | None = None) -> None:
        """Drop the changes up to a revision, by default all; older watches, lists and tokens get 410 Expired."""
        self._faults.compact(revision)

    async def __aenter__(self) -> Self:
        """Read the data directory, if any, and start to listen.

        Raises:
            ServerStartError: If the port is in use or the address is not available.
            DataDirectoryError: If the data directory cannot be used, or another process uses it.
            MissingExtraError: If TLS requires the extra ``server``.
        """
        if self._entered:
            raise RuntimeError("a server can run only once. Create a new ApiServer.")
        self._entered = True
        options = self._options
        try:
            if options.data_dir is not None:
                from deltaloop.apiserver.persistence import DataFile

                self._file = DataFile(options.data_dir, fsync=options.fsync)
                self._file.load(self._store)
                self._state.crds.serve_stored(now=self._epoch())
            self._credentials = credentials = credentials_of(options, self._token)
            self._token = credentials.token
            if credentials.authority is not None:
                self._context = credentials.authority.server_context(host=options.host)
            self._make_first_objects()
            self._filters = self._assemble(credentials)
            await self._listen(options.port)
            self._make_own_service(self._port)
        except BaseException:
            await self._close_file()
            raise
        self._running = True
        self._signal.publish()
        self._start_controllers()
        _log.info("API server is listening", extra={"url": self.url})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop watches and controllers, close the sockets, and write the remaining data."""
        self._signal.close()
        self._large_writes.close()
        for task in self._controllers:
            task.cancel()
        runner, self._runner = self._runner, None
        self._running = False
        try:
            await asyncio.gather(*self._controllers, return_exceptions=True)
            await self._faults.close()
            await self._conversions.close()
            await self._webhooks.close()
        finally:
            try:
                if self._door is not None:
                    await self._door.close(patience=_STOP_PATIENCE)
                    self._door = None
                if runner is not None:
                    await connections.close(runner)
            finally:
                await self._close_file()
        _log.info("API server stopped", extra={"revision": self._store.revision})

    async def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            await file.close()

    def _epoch(self) -> float:
        return self._options.wall_clock().timestamp()

    def _moment(self) -> Moment:
        return Moment(self._epoch(), str(uuid.uuid4()), self._random.random())

    def first_objects(self) -> StoreState:
        """Return the initial objects for other servers with the same options, because a copy is faster than creation.

        Raises:
            RuntimeError: If the server was already entered.
        """
        if self._entered:
            raise RuntimeError("first_objects() requires a server that has not run yet")
        self._entered = True
        self._make_first_objects()
        self._make_own_service(self._options.port or _HTTPS)
        return self._store.state()

    def _make_first_objects(self) -> None:
        if self._begins_with is not None:
            self._store.begin_with(self._begins_with)
            if self._store.count(kinds.CUSTOM_RESOURCE_DEFINITION.group_resource):
                self._state.crds.serve_stored(now=self._epoch())
            return
        make_first_objects(self._state, self._moment)
        make_observed(self._state, flow_control(), self._moment)
        if self._options.authorization_mode == "RBAC":
            make_observed(self._state, bootstrap_policy(), self._moment)

    def _make_own_service(self, port: int) -> None:
        host = self._options.host
        address = "127.0.0.1" if host == "localhost" else host
        make_own_service(self._state, address=address, port=port, moments=self._moment)

    def _label_secret(self, secret: Resource) -> None:
        """Record in a Secret that its token was used today."""
        day = day_of_use(secret, now=self._epoch())
        served = self._state.registry.resource(kinds.SECRET)
        if not day or served is None:
            return

        def label(fields: dict[str, Any]) -> dict[str, Any]:
            metadata = dict(fields["metadata"])
            metadata["labels"] = {**metadata.get("labels", {}), LAST_USED: day}
            return {**fields, "metadata": metadata}

        patch(self._state.own_write(served, secret.namespace, secret.name, self._moment()), label)

    def _assemble(self, credentials: ServerCredentials) -> Filters:
        options = self._options
        headers = {
            "Cache-Control": "no-cache, private",
            "X-Kubernetes-PF-FlowSchema-UID": str(uuid.uuid4()),
            "X-Kubernetes-PF-PriorityLevel-UID": str(uuid.uuid4()),
        }
        rbac = options.authorization_mode == "RBAC"
        answering = Answering(
            state=self._state,
            signal=self._signal,
            writes=self._large_writes,
            conversions=self._conversions,
            authorizer=RbacAuthorizer(self._store) if rbac else AlwaysAllow(),
            headers=headers,
            options=options,
            settle=self._file.settle if self._file is not None else None,
            epoch=self._epoch,
            moments=self._moment,
            random=self._random.random,
        )
        authenticator = Authenticator(
            credentials.token,
            users=options.users,
            signer=credentials.signer,
            store=self._store,
            epoch=self._epoch,
            secret_used=self._label_secret,
        )
        handlers = Handlers(answering, AccessHandlers(answering, authenticator, credentials.signer))
        return Filters(handlers, answering, authenticator=authenticator, faults=self._faults)

    async def _listen(self, port: int) -> None:
        assert self._filters is not None
        answered = connections.answering(self._filters.handle, self._outgoing, self._incoming)
        runner = web.ServerRunner(connections.http_server(answered), shutdown_timeout=_STOP_PATIENCE)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._options.host, port, ssl_context=self._context).start()
        except OSError as error:
            await runner.cleanup()
            raise _start_error(error, self._options) from error
        except BaseException:
            await runner.cleanup()
            raise
        self._port = int(runner.addresses[0][1])
        self._runner = runner
        self._door = DirectDoor(answered)

    async def _restart(self, seconds: float) -> None:
        runner, self._runner = self._runner, None
        if runner is None:
            raise RuntimeError("the server does not run, or is already restarting")
        for connection in runner.server.connections if runner.server is not None else ():
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        if self._door is not None:
            self._door.cut()
            self._door = None
        await runner.cleanup()
        _log.info("API server is restarting", extra={"seconds": seconds})
        await asyncio.sleep(seconds)
        if self._running:
            await self._listen(self._port)

    def _start_controllers(self) -> None:
        for name, run in _controllers(self._options):
            work = run(self._state, self._signal, moments=self._moment)
            task = asyncio.create_task(work, name=f"deltaloop-apiserver-{name}")
            task.add_done_callback(_report_failure)
            self._controllers.append(task)


def _registry(options: ServerOptions) -> Registry:
    if "coordinated-leases" in options.controllers:
        from deltaloop.apiserver.core.controllers.coordinated_leases import LEASE_CANDIDATES

        leases = kinds.LEASE.group_resource
        served = (replace(each, strategy=Strategy()) if each.storage == leases else each for each in built_in())
        return Registry((*served, LEASE_CANDIDATES))
    return _built_in_registry().copy()


@cache
def _built_in_registry() -> Registry:
    registry = Registry(built_in())
    registry.groups()  # this and the next call compute values once for all servers
    registry.sharing("")
    return registry


def _controllers(options: ServerOptions) -> Iterator[tuple[str, RunController]]:
    from deltaloop.apiserver.controllers import collect_garbage, elect_holders, repeat

    yield "custom-resources", partial(repeat, InstanceDeletion(), CRDS)
    if "gc" in options.controllers:
        yield "gc", collect_garbage
    if "namespace" in options.controllers:
        from deltaloop.apiserver.core.controllers.garbage import clean_up

        yield "namespace", partial(repeat, clean_up, WHILE_DELETING)
    if "volume-protection" in options.controllers:
        from deltaloop.apiserver.core.controllers.garbage import release

        yield "volume-protection", partial(repeat, release, WHILE_DELETING)
    if "policy-status" in options.controllers:
        from deltaloop.apiserver.core.controllers.policy_status import POLICIES, write_statuses

        yield "policy-status", partial(repeat, write_statuses, POLICIES.group_resource)
    if "coordinated-leases" in options.controllers:
        yield "coordinated-leases", elect_holders


def _report_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("controller of the API server failed", exc_info=error, extra={"task": task.get_name()})


def _start_error(error: OSError, options: ServerOptions) -> ServerStartError:
    where = f"{options.host}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        message = f"port {options.port} of {options.host} is in use. Use a different port, or 0 for a free port."
    elif error.errno == errno.EACCES:
        message = f"missing permission to listen on {where}. Ports below 1024 are reserved. Use a higher port."
    else:
        message = f"cannot listen on {where}: {error.strerror or type(error).__name__}"
    return ServerStartError(message, host=options.host, port=options.port)
