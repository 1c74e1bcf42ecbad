"""What all verbs stand on: one way to read an object, to list, and to write; a client may have another one of each.

The verbs say what is asked, here is how: a client that reads from caches or remembers its writes replaces ``_read``,
``_list`` and ``_write``, and has every verb.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, TypeVar, Unpack

import msgspec

from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.json_writing import write_json
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, decode_object
from deltaloop.api.resource_type import ResourceType, TypedKind, as_kind
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import ApiError, NotFoundError, Status, StatusDetails, error_from_status
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.accept import list_accept
from deltaloop.client.core.answers import is_unserved_path
from deltaloop.client.core.metadata_only import metadata_of_list
from deltaloop.client.discovery import Discovery
from deltaloop.client.options import AccessCheck, ClientOptions, DeleteOptions, WarningHandler, WriteCheck, WriteOptions
from deltaloop.client.transport.protocol import Pool
from deltaloop.client.transport.sender import RequestSender
from deltaloop.client.verbs.request_keywords import GetKeywords
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemsError

if TYPE_CHECKING:
    from deltaloop.client.core.resource_index import ResourceIndex

T = TypeVar("T")

EVERYTHING: Final = ListOptions()

WriteVerb: TypeAlias = Literal["create", "update", "patch", "apply", "delete", "delete_collection"]

_METHODS: Final[dict[WriteVerb, str]] = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "apply": "PATCH",
    "delete": "DELETE",
    "delete_collection": "DELETE",
}
_RBAC_VERBS: Final[dict[WriteVerb, str]] = {"apply": "patch", "delete_collection": "deletecollection"}


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A write: all that a client has to know to send it, and to remember it.

    Attributes:
        verb: What is done.
        resource_type: The kind of the object.
        name: Name of the object; empty if the server is to generate it, and for a collection.
        namespace: Namespace of the object; None if its kind has none.
        query: Query parameters.
        options: Dry run and preconditions; of a deletion all that is sent.
        subresource: The part of it that is written, such as ``status``.
        body: What is sent.
        content_type: The form of the body.
        version: The version that an update or a patch asks for; empty if it asks for none.
        generate_name: Beginning of the name that the server generates.
        timeout: Seconds for the whole call; None is the client's own limit.
    """

    verb: WriteVerb
    resource_type: ResourceType[Any]
    name: str
    namespace: str | None
    query: Mapping[str, str]
    options: WriteOptions | DeleteOptions | None
    subresource: str | None = None
    body: bytes | None = None
    content_type: str = "application/json"
    version: str = ""
    generate_name: str = ""
    timeout: float | None = None

    @property
    def names_version(self) -> bool:
        """Whether the body is an object of the resource type, which names its version."""
        return self.verb in ("update", "apply") or (self.verb == "create" and not self.subresource)

    @property
    def dry_run(self) -> bool:
        """Whether nothing is stored."""
        return self.options is not None and self.options.dry_run


class Caller:
    """One way to call a server: its connections, its namespace, its options. The verbs are in the classes below it."""

    _why_no_home = "this client has no default namespace"

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
        self._access_check: AccessCheck | None = None
        self._home = config.namespace
        self._on_written: Callable[[WriteRequest, bytes], object] | None = None

    @property
    def namespace(self) -> str:
        """Namespace of verbs of one object that name none."""
        return self._home

    async def resource(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource that the server serves by any of its names.

        Args:
            name: Plural, singular, kind, short name (``deploy``), ``deployments.apps``, ``deployments.v1.apps`` or
                ``apps/v1/Deployment``, in upper or lower case.
            timeout: Seconds for each request.

        Raises:
            UnknownResourceError: If there is none of that name; the message lists names like it.
        """
        return await self._discovery.find(name, timeout=timeout)

    async def resources(self, *, timeout: float | None = None) -> ResourceIndex:
        """Return everything that the server serves; asked once and kept, ``resource`` refreshes it when needed.

        ``timeout`` is in seconds, for each request.
        """
        return await self._discovery.resources(timeout=timeout)

    # -- one way for each

    async def _read(
        self,
        known: ResourceType[Any],
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Read one object.

        Raises:
            NotFoundError: If there is none of that name.
        """
        try:
            return await self._read_once(known, name, namespace, subresource, timeout)
        except NotFoundError as error:
            moved = await self._moved(known, error, timeout)
            return await self._read_once(moved, name, namespace, subresource, timeout)

    async def _read_once(
        self,
        known: ResourceType[Any],
        name: str,
        namespace: str | None,
        subresource: str | None,
        timeout: float | None,
    ) -> Resource:
        place = self._namespace(known, namespace)
        path = known.path(namespace=place, name=name, subresource=subresource)
        self._check_access("get", known, place, subresource)
        answer = await self._sender.send(
            "GET", path, timeout=timeout, pool=self._pool, on_warning=self._on_warning, write_check=self._write_check
        )
        return Resource.from_json(answer.body, known)

    async def _find(self, known: ResourceType[Any], name: str, **keywords: Unpack[GetKeywords]) -> Resource | None:
        """Read one object; None if there is none of that name."""
        try:
            return await self._read(known, name, **keywords)
        except NotFoundError:
            return None

    async def _list(
        self,
        known: ResourceType[Any],
        *,
        namespace: str | None = None,
        options: ListOptions = EVERYTHING,
        selector: str | LabelSelector | None = None,
        timeout: float | None = None,
        metadata_only: bool = False,
    ) -> ResourceList[Any]:
        """Read objects in one request; with ``metadata_only`` they come as ``Resource``."""
        options = selected(options, selector)
        try:
            return await self._list_once(known, namespace, options, timeout, metadata_only=metadata_only)
        except NotFoundError as error:
            moved = await self._moved(known, error, timeout)
            return await self._list_once(moved, namespace, options, timeout, metadata_only=metadata_only)

    async def _list_once(
        self,
        known: ResourceType[Any],
        namespace: str | None,
        options: ListOptions,
        timeout: float | None,
        *,
        metadata_only: bool,
    ) -> ResourceList[Any]:
        from deltaloop.client.core.list_splitter import ListSplitter

        namespace = self._usable(known, namespace)
        self._check_access("list", known, namespace)
        drop_managed_fields = options.drop_managed_fields
        body = await self._sender.receive(
            known.path(namespace=namespace),
            query=options.to_query(),
            sink=lambda: ListSplitter(known, drop_managed_fields=drop_managed_fields),
            accept=list_accept(metadata_only=metadata_only, drop_managed_fields=drop_managed_fields),
            timeout=timeout,
            pool=self._pool,
            on_warning=self._on_warning,
        )
        try:
            page = body.finish()
        except UnreadableItemsError as error:
            if metadata_only:
                raise UnreadableItemsError(metadata_of_list(error.page)) from None
            raise
        return metadata_of_list(page) if metadata_only else page

    async def _write(self, request: WriteRequest) -> bytes:
        """Send a write, and return what the server answers."""
        try:
            return await self._write_once(request)
        except NotFoundError as error:
            known = request.resource_type
            moved = await self._moved(known, error, request.timeout)
            if moved.api_version != known.api_version and request.names_version:
                raise  # `_store` encodes the object again, for the other version
            if moved.namespaced and not request.namespace and request.verb == "delete_collection":
                raise  # it takes no default
            place = self._namespace(moved, request.namespace)
            return await self._write_once(msgspec.structs.replace(request, resource_type=moved, namespace=place))

    async def _write_once(self, request: WriteRequest) -> bytes:
        of_collection = request.verb == "delete_collection" or (request.verb == "create" and not request.subresource)
        name, body = None if of_collection else request.name, request.body
        if isinstance(request.options, DeleteOptions) and body is None:
            body = write_json(request.options.to_dict(), "the delete options")
        path = request.resource_type.path(namespace=request.namespace, name=name, subresource=request.subresource)
        verb = _RBAC_VERBS.get(request.verb, request.verb)
        self._check_access(verb, request.resource_type, request.namespace, request.subresource)
        answer = await self._sender.send(
            _METHODS[request.verb],
            path,
            query=request.query,
            body=body,
            content_type=request.content_type,
            timeout=request.timeout,
            pool=self._pool,
            on_warning=self._on_warning,
            write_check=self._write_check,
        )
        if self._on_written is not None:
            self._on_written(request, answer.body)
        return answer.body

    def _answered(self, known: ResourceType[T], body: bytes) -> T:
        """Return what ``_write`` returned as an object."""
        return decode_object(self._discovery.current(known), body)

    # -- what these need

    def _check_access(
        self, verb: str, known: ResourceType[Any], namespace: str | None, subresource: str | None = None
    ) -> None:
        if self._access_check is not None:
            self._access_check(verb, known, namespace, subresource or "")

    async def _known(self, kind: TypedKind[T] | str, timeout: float | None) -> ResourceType[T]:
        """Find a resource: classes and built-in kinds without a question, anything else by discovery."""
        kind = as_kind(kind)
        if isinstance(kind, ResourceType):
            return self._discovery.current(kind)
        try:
            return parse_resource_type(kind)
        except UnknownResourceError:
            return await self._discovery.find(kind, timeout=timeout)  # type: ignore[return-value]  # T is Resource then

    async def _moved(self, known: ResourceType[T], error: NotFoundError, timeout: float | None) -> ResourceType[T]:
        """Return a resource as it is served now, if a 404 shows that its path is not served any more.

        Raises:
            NotFoundError: The 404 itself, if it is about an object, or if the server serves nothing else.
            UnknownResourceError: If the resource was found by a name that no longer exists.
        """
        moved = await self._discovery.moved(known, timeout=timeout) if is_unserved_path(error) else None
        if moved is None:
            raise error
        return moved

    def _with(self, **changes: object) -> Self:
        """Return a copy on the same connections."""
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def _namespace(self, known: ResourceType[Any], namespace: str | None) -> str | None:
        """Return the namespace of a request about one object; None if its kind has no namespaces.

        Raises:
            InvalidArgumentError: If there is no namespace for a kind that has some, or one for a kind that has none.
        """
        if not known.namespaced:
            if namespace:
                refuse_namespace(known, self._usable(known, namespace))
            return None
        place = namespace or self._home
        if not place:
            raise InvalidArgumentError(f"{known} needs a namespace, and {self._why_no_home}. Specify namespace=...")
        return place

    def _usable(self, known: ResourceType[Any], namespace: str | None) -> str | None:
        """Return a namespace; drop the default one if the kind has become cluster-scoped since its use began."""
        if not namespace or known.namespaced or namespace != self.namespace:
            return namespace
        return None if self._discovery.is_moved(known) else namespace


def refuse_namespace(known: ResourceType[Any], namespace: str | None) -> None:
    """Refuse a namespace for a kind that has none: a cache would find no object there, and say nothing.

    Raises:
        InvalidArgumentError: If there is one.
    """
    if namespace and not known.namespaced:
        raise InvalidArgumentError(f"{known} has no namespaces, but namespace {namespace!r} was given")


def both_checks(earlier: WriteCheck | None, check: WriteCheck) -> WriteCheck:
    """Return a check that asks an earlier one, if there is one, and then another."""
    if earlier is None:
        return check

    def both(action: str) -> None:
        earlier(action)
        check(action)

    return both


def selected(options: ListOptions, selector: str | LabelSelector | None) -> ListOptions:
    """Return options with a label selector.

    Raises:
        InvalidArgumentError: If they have one already.
        InvalidSelectorError: If the selector cannot be parsed.
    """
    if selector is None:
        return options
    if options.label_selector:
        raise InvalidArgumentError("a list has one label selector: give `selector` or `options.label_selector`")
    parsed = LabelSelector.parse(selector) if isinstance(selector, str) else selector
    return options.replace(label_selector=str(parsed))


def not_found(kind: ResourceType[Any], name: str, what: str = "not found") -> ApiError:
    """Return the error of an object that is not there, as the server would return it."""
    details = StatusDetails(name=name, group=kind.group, kind=kind.plural)
    message = f'{kind.group_resource} "{name}" {what}'
    return error_from_status(Status(code=404, reason="NotFound", message=message, details=details))
