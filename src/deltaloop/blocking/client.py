"""The client as threads use it: each verb waits. The client itself lives on the background loop; it decides nothing."""

from __future__ import annotations

from typing import Final, final

from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.scope import Scope
from deltaloop.blocking.waiting import iterates, opens, waits
from deltaloop.client import Client as AsyncClient
from deltaloop.client import ClientConfig


@final
class Client(Scope):
    """A client of one API server for any number of threads; ``with`` closes its connections at the end.

    Verbs mean and raise what those of ``deltaloop.Client`` do, and ``BackgroundLoopError`` if they cannot wait: after
    ``close``, in a forked process, and on the background loop's own thread. A wait that is interrupted, by Ctrl-C say,
    cancels the request; a cancelled write may have been carried out.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    def __init__(self, client: AsyncClient, *, loop: BackgroundLoop | None = None) -> None:
        """Make a client that is not entered yet.

        Args:
            client: What sends the requests; closed with this one.
            loop: Where it lives; by default a loop of its own, which ``close`` ends.
        """
        self._client = client
        self._owns_loop = loop is None
        self._loop = loop if loop is not None else BackgroundLoop()

    @property
    def loop(self) -> BackgroundLoop:
        """The loop on which it lives; factories made with this client live there, too."""
        return self._loop

    @property
    def asynchronous(self) -> AsyncClient:
        """The client that sends the requests, for coroutines on ``loop``."""
        return self._client

    @property
    def config(self) -> ClientConfig:
        """The configuration; its ``repr`` shows no secret."""
        return self._client.config

    @property
    def namespace(self) -> str:
        """Namespace of verbs of one object that name none."""
        return self._client.namespace

    def open(self) -> None:
        """Start the loop, if it is the client's own; ``with`` does it, too.

        Repeating it is fine.
        """
        if self._owns_loop:
            self._loop.start()
        self._loop.enter(self._client)

    def close(self) -> None:
        """Close all connections, and end the loop if it is the client's own; a second call does nothing.

        Threads that wait for an answer get an error. Close factories before.
        """
        try:
            self._loop.leave(self._client)
        finally:
            if self._owns_loop:
                self._loop.close()

    resource: Final = waits(AsyncClient.resource)
    resources: Final = waits(AsyncClient.resources)
    get: Final = waits(AsyncClient.get)
    find: Final = waits(AsyncClient.find)
    list: Final = waits(AsyncClient.list)
    list_all: Final = waits(AsyncClient.list_all)
    iter_list: Final = iterates(AsyncClient.iter_list)
    watch: Final = opens(AsyncClient.watch)
    wait_for: Final = waits(AsyncClient.wait_for)
    create: Final = waits(AsyncClient.create)
    update: Final = waits(AsyncClient.update)
    update_status: Final = waits(AsyncClient.update_status)
    patch: Final = waits(AsyncClient.patch)
    apply: Final = waits(AsyncClient.apply)
    delete: Final = waits(AsyncClient.delete)
    delete_collection: Final = waits(AsyncClient.delete_collection)
    create_or_update: Final = waits(AsyncClient.create_or_update)
    edit: Final = waits(AsyncClient.edit)
    add_finalizer: Final = waits(AsyncClient.add_finalizer)
    remove_finalizer: Final = waits(AsyncClient.remove_finalizer)
    get_scale: Final = waits(AsyncClient.get_scale)
    scale: Final = waits(AsyncClient.scale)
    evict: Final = waits(AsyncClient.evict)
    create_subresource: Final = waits(AsyncClient.create_subresource)
    logs: Final = opens(AsyncClient.logs)

    def __repr__(self) -> str:
        return f"<blocking {self._client!r}>"
