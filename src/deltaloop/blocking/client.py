"""The client as threads use it: each verb waits. The client itself lives on the background loop; here is no decision.

``call`` reaches what has no method of its own here, with its types:
``client.call(lambda client: client.scale(dl.kinds.DEPLOYMENT, "web", 3))``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, Unpack, final, overload

import deltaloop.client
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.blocking.background_loop import BackgroundLoop
from deltaloop.blocking.queue import BlockingQueue
from deltaloop.blocking.scope import Scope
from deltaloop.client import ClientConfig, DeleteOptions, PatchType, ResourceList, WriteOptions
from deltaloop.client.core.pager import DEFAULT_PAGE_SIZE
from deltaloop.client.core.wait_conditions import Deleted, WaitCondition
from deltaloop.client.request_keywords import ApplyKeywords, DeleteKeywords, RequestKeywords, WriteKeywords
from deltaloop.workqueue import WorkQueue

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_NO_OPTIONS: Final = ListOptions()


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

    def resource(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource that the server serves by any of its names, such as ``deploy``.

        Raises:
            UnknownResourceError: If there is none of that name.
        """
        return self._loop.run(self._client.resource(name, timeout=timeout))

    @overload
    def get(
        self, rt: ResourceType[T], name: str, *, subresource: str | None = None, **keywords: Unpack[RequestKeywords]
    ) -> T: ...
    @overload
    def get(
        self, rt: str, name: str, *, subresource: str | None = None, **keywords: Unpack[RequestKeywords]
    ) -> Resource: ...
    def get(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Read one object.

        Raises:
            NotFoundError: If there is none of that name.
        """
        return self._loop.run(self._client.get(rt, name, namespace=namespace, subresource=subresource, timeout=timeout))

    @overload
    def list(
        self,
        rt: ResourceType[T],
        *,
        options: ListOptions = ...,
        metadata_only: Literal[False] = False,
        **keywords: Unpack[RequestKeywords],
    ) -> ResourceList[T]: ...
    @overload
    def list(
        self, rt: str, *, options: ListOptions = ..., metadata_only: bool = ..., **keywords: Unpack[RequestKeywords]
    ) -> ResourceList[Resource]: ...
    @overload
    def list(
        self,
        rt: ResourceType[Any],
        *,
        options: ListOptions = ...,
        metadata_only: Literal[True],
        **keywords: Unpack[RequestKeywords],
    ) -> ResourceList[Resource]: ...
    def list(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        timeout: float | None = None,
        metadata_only: bool = False,
    ) -> Any:
        """Ask for objects in one request: everything, or one page if ``options.limit`` is set."""
        verb: Callable[..., Coroutine[Any, Any, Any]] = self._client.list
        return self._loop.run(
            verb(rt, namespace=namespace, options=options, timeout=timeout, metadata_only=metadata_only)
        )

    @overload
    def list_all(
        self,
        rt: ResourceType[T],
        *,
        options: ListOptions = ...,
        page_size: int = ...,
        **keywords: Unpack[RequestKeywords],
    ) -> ResourceList[T]: ...
    @overload
    def list_all(
        self, rt: str, *, options: ListOptions = ..., page_size: int = ..., **keywords: Unpack[RequestKeywords]
    ) -> ResourceList[Resource]: ...
    def list_all(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: float | None = None,
    ) -> Any:
        """Read all objects, page by page; ``timeout`` is for each page."""
        return self._loop.run(
            self._client.list_all(rt, namespace=namespace, options=options, page_size=page_size, timeout=timeout)
        )

    @overload
    def create(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    def create(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    def create(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Create an object and return it as stored.

        Raises:
            AlreadyExistsError: If there is one of that name.
        """
        return self._loop.run(self._client.create(rt, obj, namespace=namespace, options=options, timeout=timeout))

    @overload
    def update(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    def update(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    def update(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace an object and return it as stored.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
        """
        return self._loop.run(self._client.update(rt, obj, namespace=namespace, options=options, timeout=timeout))

    @overload
    def update_status(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    def update_status(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    def update_status(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace the ``status`` of an object and return it as stored.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
        """
        return self._loop.run(
            self._client.update_status(rt, obj, namespace=namespace, options=options, timeout=timeout)
        )

    @overload
    def patch(
        self,
        rt: ResourceType[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = ...,
        **keywords: Unpack[ApplyKeywords],
    ) -> T: ...
    @overload
    def patch(
        self,
        rt: str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = ...,
        **keywords: Unpack[ApplyKeywords],
    ) -> Resource: ...
    def patch(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the API's word
        namespace: str | None = None,
        subresource: str | None = None,
        force: bool = False,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Change an object and return it as stored.

        Raises:
            ConflictError: If that version is not the present one; for apply, if another manager has one of the fields.
        """
        return self._loop.run(
            self._client.patch(
                rt,
                name,
                patch,
                type=type,
                namespace=namespace,
                subresource=subresource,
                force=force,
                options=options,
                timeout=timeout,
            )
        )

    @overload
    def apply(self, rt: ResourceType[T], obj: object, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    def apply(self, rt: str, obj: object, **keywords: Unpack[ApplyKeywords]) -> Resource: ...
    def apply(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        force: bool = False,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Server-side apply: say which fields this manager wants to have.

        Raises:
            ConflictError: If another manager has one of the fields and ``force`` is not set.
        """
        return self._loop.run(
            self._client.apply(
                rt, obj, namespace=namespace, subresource=subresource, force=force, options=options, timeout=timeout
            )
        )

    @overload
    def delete(self, rt: ResourceType[T], name: str, **keywords: Unpack[DeleteKeywords]) -> T | None: ...
    @overload
    def delete(self, rt: str, name: str, **keywords: Unpack[DeleteKeywords]) -> Resource | None: ...
    def delete(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete an object, or mark it for deletion; return it where the server answers with it.

        Raises:
            NotFoundError: If there is none of that name.
        """
        return self._loop.run(self._client.delete(rt, name, namespace=namespace, options=options, timeout=timeout))

    @overload
    def wait_for(
        self, rt: ResourceType[Any] | str, name: str, condition: Deleted, **keywords: Unpack[RequestKeywords]
    ) -> None: ...
    @overload
    def wait_for(
        self, rt: ResourceType[T], name: str, condition: WaitCondition, **keywords: Unpack[RequestKeywords]
    ) -> T: ...
    @overload
    def wait_for(
        self, rt: str, name: str, condition: WaitCondition, **keywords: Unpack[RequestKeywords]
    ) -> Resource: ...
    def wait_for(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        condition: WaitCondition | Deleted,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Wait until an object fulfils a condition, and return it as it was then; None for ``deleted()``.

        Raises:
            WaitTimeoutError: If it does not happen in time; the message says what was last seen.
        """
        return self._loop.run(self._client.wait_for(rt, name, condition, namespace=namespace, timeout=timeout))

    def __repr__(self) -> str:
        return f"<blocking {self._client!r}>"
