"""Reading of a cluster for a plan: a client that can only list, and the objects that a program may read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from typing import Any, Final, final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ExpiredError, ForbiddenError, NotFoundError
from deltaloop.apiserver.embedding import describe_request
from deltaloop.client import Client, ClientConfig
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.client.transport.protocol import HttpRequest, HttpResponse, StreamResponse, Transport
from deltaloop.planning.reading import CONTEXT, MUTATING_POLICIES, POLICIES, WEBHOOKS, PlanError, kinds_to_read
from deltaloop.runtime import Controller
from deltaloop.webhooks.declaring import Webhook

_CRD: Final = kinds.CUSTOM_RESOURCE_DEFINITION
_PAGE: Final = 500


@final
class ListOnlyTransport:
    """Transport that rejects all requests except lists before they are sent."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests: int = 0

    def _check(self, request: HttpRequest) -> None:
        info = describe_request(request.method, request.path, request.query)
        if info.verb != "list":
            raise PlanError(f"a plan must only list objects, got {request.method} {request.path}. It was not sent.")
        self.requests += 1

    async def request(self, request: HttpRequest) -> HttpResponse:
        self._check(request)
        return await self._inner.request(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        self._check(request)
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def reading_client(config: ClientConfig) -> Client:
    """Return a client that can only list."""
    return Client(config, transport=ListOnlyTransport(HttpTransport(config)))


async def cluster_objects(
    client: Client, controllers: Sequence[Controller], webhooks: Sequence[Webhook], *, namespace: str | None = None
) -> AsyncGenerator[dict[str, object], None]:
    """Yield the objects that a program may read, page by page: definitions and policies first."""
    reader = _Reader(client)
    async for fields in reader.all_of(kinds.NAMESPACE):
        yield fields
    known: dict[tuple[str, str], Mapping[str, object]] = {}
    async for fields in reader.all_of(_CRD):
        known[text(at(fields, "spec", "group")), text(at(fields, "spec", "names", "kind"))] = fields
    wanted = [*kinds_to_read(controllers, webhooks)]
    named: set[str] = set()
    policies = [*POLICIES, *[await reader.served(versions) for versions in MUTATING_POLICIES]]
    held: list[dict[str, object]] = []
    for kind in (each for each in policies if each is not None):
        async for fields in reader.all_of(kind):
            held.append({**fields, "apiVersion": "admissionregistration.k8s.io/v1"})
            parameter = mapping(at(fields, "spec", "paramKind"))
            if parameter:
                named.add(f"{text(parameter.get('apiVersion'))}/{text(parameter.get('kind'))}")
    found: dict[str, ResourceType[Any]] = {}
    for each in (*wanted, *sorted(named)):
        resolved, definition = _resolved(each, known)
        if definition is not None and str(resolved) not in found:
            yield dict(definition)
        if resolved is not None:
            found[str(resolved)] = resolved
    for fields in held:
        yield fields
    for kind in (*WEBHOOKS, *(each for each in found.values() if each not in CONTEXT)):
        async for fields in reader.all_of(kind, namespace=namespace if kind.namespaced else None):
            yield fields


def _resolved(
    kind: ResourceType[Any] | str, known: Mapping[tuple[str, str], Mapping[str, object]]
) -> tuple[ResourceType[Any] | None, Mapping[str, object] | None]:
    """Return a kind in its stored version, with its CRD; None if it has no CRD yet."""
    api_version, _, name = str(kind).rpartition("/")
    definition = known.get((api_version.rpartition("/")[0], name))
    if definition is None:
        builtin = isinstance(kind, ResourceType) and any(str(each) == str(kind) for each in kinds.BUILT_IN)
        return (kind if builtin and isinstance(kind, ResourceType) else None), None
    spec = mapping(definition["spec"])
    stored = next(text(at(each, "name")) for each in items(spec.get("versions")) if at(each, "storage") is True)
    plural, namespaced = text(at(spec, "names", "plural")), spec.get("scope") == "Namespaced"
    return ResourceType[Resource](text(spec.get("group")), stored, name, plural, namespaced=namespaced), definition


@final
class _Reader:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def served(self, versions: Sequence[ResourceType[Any]]) -> ResourceType[Any] | None:
        """Return the first version that the cluster serves, or None."""
        for kind in versions:
            try:
                await self._page(kind)
            except NotFoundError:
                continue
            return kind
        return None

    async def _page(self, kind: ResourceType[Any]) -> None:
        from deltaloop.api.list_options import ListOptions

        with _explained(kind):
            await self._client.list(kind, options=ListOptions(limit=1))

    async def all_of(
        self, kind: ResourceType[Any], *, namespace: str | None = None
    ) -> AsyncGenerator[dict[str, object], None]:
        plain = ResourceType[Resource](kind.group, kind.version, kind.kind, kind.plural, namespaced=kind.namespaced)
        with _explained(kind):
            async with aclosing(self._client.iter_list(plain, page_size=_PAGE, namespace=namespace)) as found:
                async for obj in found:
                    yield {"apiVersion": kind.api_version, "kind": kind.kind, **mapping(obj.to_dict())}


@contextmanager
def _explained(kind: ResourceType[Any]) -> Generator[None]:
    try:
        yield
    except ForbiddenError:
        raise PlanError(
            f"this account is not allowed to list {kind.group_resource}. Grant the role of `deltaloop generate rbac "
            "MODULE --plan`.",
            place=kind.group_resource,
        ) from None
    except ExpiredError:
        problem = f"the list of {kind.group_resource} expired while it was read. Try again."
        raise PlanError(problem, place=kind.group_resource) from None
