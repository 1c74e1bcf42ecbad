"""The client as threads use it: each verb waits. The client itself lives on the background loop; here is no decision.

``call`` waits for any coroutine of the client, with its types and a time limit of its own:
``client.call(lambda client: client.scale(dl.kinds.DEPLOYMENT, "web", 3), timeout=5)``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, TypeVar, final

import deltaloop.client
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.queue import BlockingQueue
from deltaloop.blocking.scope import Scope
from deltaloop.blocking.waiting import iterates, opens, waits
from deltaloop.client import ClientConfig
from deltaloop.workqueue import WorkQueue

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@final
class Client(Scope):
    """A client of one API server for any number of threads; ``with`` closes its connections at the end.

    Verbs mean and raise what those of ``deltaloop.Client`` do, and ``BackgroundLoopError`` if they cannot wait: after
    ``close``, in a forked process, and on the background loop's own thread. A wait that is interrupted, by Ctrl-C say,
    cancels the request; a cancelled write may have been carried out.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    def __init__(self, client: deltaloop.client.Client, *, loop: BackgroundLoop | None = None) -> None:
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
    def asynchronous(self) -> deltaloop.client.Client:
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

    def call(
        self, verb: Callable[[deltaloop.client.Client], Coroutine[Any, Any, T]], *, timeout: float | None = None
    ) -> T:
        """Call any coroutine function of the client and wait; see above.

        Args:
            verb: Called with the client.
            timeout: Longest wait in seconds, on top of the verb's own.

        Raises:
            TimeoutError: If it takes longer than ``timeout``.
        """
        self._loop.check()
        return self._loop.run(verb(self._client), timeout=timeout)

    def queue(self, queue: WorkQueue[K]) -> BlockingQueue[K]:
        """Return blocking access to a work queue, whose waiting takes place on this client's loop."""
        return self._loop.queue(queue)

    resource: Final = waits(deltaloop.client.Client.resource)
    resources: Final = waits(deltaloop.client.Client.resources)
    get: Final = waits(deltaloop.client.Client.get)
    find: Final = waits(deltaloop.client.Client.find)
    list: Final = waits(deltaloop.client.Client.list)
    list_all: Final = waits(deltaloop.client.Client.list_all)
    each_list_item: Final = iterates(deltaloop.client.Client.each_list_item)
    watch: Final = opens(deltaloop.client.Client.watch)
    wait_for: Final = waits(deltaloop.client.Client.wait_for)
    create: Final = waits(deltaloop.client.Client.create)
    update: Final = waits(deltaloop.client.Client.update)
    update_status: Final = waits(deltaloop.client.Client.update_status)
    patch: Final = waits(deltaloop.client.Client.patch)
    apply: Final = waits(deltaloop.client.Client.apply)
    delete: Final = waits(deltaloop.client.Client.delete)
    delete_collection: Final = waits(deltaloop.client.Client.delete_collection)
    create_or_update: Final = waits(deltaloop.client.Client.create_or_update)
    add_finalizer: Final = waits(deltaloop.client.Client.add_finalizer)
    remove_finalizer: Final = waits(deltaloop.client.Client.remove_finalizer)
    get_scale: Final = waits(deltaloop.client.Client.get_scale)
    scale: Final = waits(deltaloop.client.Client.scale)
    evict: Final = waits(deltaloop.client.Client.evict)
    create_subresource: Final = waits(deltaloop.client.Client.create_subresource)
    logs: Final = opens(deltaloop.client.Client.logs)

    def __repr__(self) -> str:
        return f"<blocking {self._client!r}>"
