"""What all verbs stand on: from a resource and a name to a path, and from a path to an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import decode_object
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.config import ClientConfig
from deltaloop.client.discovery import Discovery
from deltaloop.client.options import ClientOptions, PatchType, WarningHandler, WriteCheck, WriteOptions
from deltaloop.client.sender import RequestSender
from deltaloop.client.transport import HttpResponse, Pool

T = TypeVar("T")


class Caller:
    """One way to call a server: its connections, its namespace, its options. The verbs are in the classes below it."""

    def __init__(
        self, config: ClientConfig, sender: RequestSender, discovery: Discovery, *, options: ClientOptions
    ) -> None:
        """Keep what calls are made with."""
        self._config = config
        self._options = options
        self._sender = sender
        self._discovery = discovery
        self._pool = Pool.REQUESTS
        self._on_warning: WarningHandler | None = options.on_warning
        self._write_check: WriteCheck | None = None

    @property
    def namespace(self) -> str:
        """Namespace of verbs of one object that name none."""
        return self._config.namespace

    async def _known(self, rt: ResourceType[T] | str, timeout: float | None) -> ResourceType[T]:
        """Find a resource: built-in kinds without a question, anything else by discovery."""
        if isinstance(rt, ResourceType):
            return rt
        try:
            return parse_resource_type(rt)
        except UnknownResourceError:
            return await self._discovery.find(rt, timeout=timeout)  # type: ignore[return-value]  # T is Resource then

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> HttpResponse:
        return await self._sender.send(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            timeout=timeout,
            pool=self._pool,
            on_warning=self._on_warning,
            write_check=self._write_check,
        )

    def _write_query(self, options: WriteOptions | None, patch_type: PatchType | None = None) -> dict[str, str]:
        query = {"fieldManager": self._options.field_manager, "fieldValidation": self._options.field_validation}
        query = {name: value for name, value in query.items() if value}
        if options is not None:
            query.update(options.to_query())
        if patch_type is PatchType.APPLY:
            # Apply must name a manager; this is the name that the server gives other writes by the user agent.
            query.setdefault("fieldManager", self._config.user_agent.partition("/")[0] or "deltaloop")
        return query

    def _namespace(self, known: ResourceType[Any], namespace: str | None) -> str | None:
        return (namespace or self.namespace) if known.namespaced else namespace

    def _object_path(
        self, known: ResourceType[Any], name: str, namespace: str | None, subresource: str | None = None
    ) -> str:
        return known.path(namespace=self._namespace(known, namespace), name=name, subresource=subresource)


def decoded(known: ResourceType[T], answer: HttpResponse) -> T:
    """Decode the object in an answer."""
    return decode_object(known, answer.body)
