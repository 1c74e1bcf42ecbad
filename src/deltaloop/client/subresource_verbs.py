"""The verbs of subresources that are no objects of their kind: scale, eviction, logs, and creating below an object."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from deltaloop.api import kinds
from deltaloop.api.json_writing import write_json
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.caller import Caller, decoded
from deltaloop.client.logs import LogStream
from deltaloop.client.options import DeleteOptions, LogOptions, PatchType, WriteOptions

SCALE: Final = ResourceType[Resource]("autoscaling", "v1", "Scale", "scales")

_NO_OPTIONS: Final = LogOptions()


class SubresourceVerbs(Caller):
    """The verbs of subresources; ``status`` is in ``get``, ``update_status``, ``patch`` and ``apply``.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    async def get_scale(
        self, rt: ResourceType[Any] | str, name: str, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource:
        """Read the ``Scale`` of an object: wanted and present replicas, and the selector of its pods.

        Raises:
            NotFoundError: If there is no such object, or its kind cannot be scaled.
        """
        known = await self._known(rt, timeout)
        path = self._object_path(known, name, namespace, "scale")
        return decoded(SCALE, await self._send("GET", path, timeout=timeout))

    async def scale(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        replicas: int,
        *,
        namespace: str | None = None,
        resource_version: str = "",
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Set how many replicas are wanted, whatever field of the kind says so; return the ``Scale``.

        Args:
            rt: What kind of object.
            name: Its name.
            replicas: How many.
            namespace: The client's by default.
            resource_version: Only if the object is at this version; empty means at any.
            options: Dry run, field manager, field validation.
            timeout: Seconds.

        Raises:
            ConflictError: If the object is not at that version.
        """
        known = await self._known(rt, timeout)
        patch: dict[str, Any] = {"spec": {"replicas": replicas}}
        if resource_version:
            patch["metadata"] = {"resourceVersion": resource_version}
        answer = await self._send(
            "PATCH",
            self._object_path(known, name, namespace, "scale"),
            query=self._write_query(options),
            body=write_json(patch, f"the scale of {known} {name!r}"),
            content_type=PatchType.MERGE.value,
            timeout=timeout,
        )
        return decoded(SCALE, answer)

    async def evict(
        self,
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> None:
        """Delete a pod if its disruption budgets allow it.

        Args:
            name: Name of the pod.
            namespace: The client's by default.
            options: Grace period and preconditions.
            timeout: Seconds.

        Raises:
            TooManyRequestsError: If a budget does not allow it now.
        """
        where = self._namespace(kinds.POD, namespace)
        eviction: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": where},
        }
        if options is not None:
            eviction["deleteOptions"] = options.to_dict()
        body = write_json(eviction, "the eviction")
        await self._send("POST", self._object_path(kinds.POD, name, where, "eviction"), body=body, timeout=timeout)

    async def create_subresource(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        subresource: str,
        obj: Mapping[str, Any] | Resource,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Resource:
        """Create something below an object, such as ``token`` of a service account or ``binding`` of a pod.

        Args:
            rt: What kind of object.
            name: Its name.
            subresource: Name of the subresource.
            obj: What is sent, with its ``apiVersion`` and ``kind``.
            namespace: The client's by default.
            options: Dry run, field manager, field validation.
            timeout: Seconds.
        """
        known = await self._known(rt, timeout)
        fields = obj.to_dict() if isinstance(obj, Resource) else obj
        answer = await self._send(
            "POST",
            self._object_path(known, name, namespace, subresource),
            query=self._write_query(options),
            body=write_json(fields, f"the {subresource} of {known} {name!r}"),
            timeout=timeout,
        )
        return Resource.from_json(answer.body)

    def logs(
        self,
        name: str,
        *,
        namespace: str | None = None,
        options: LogOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[LogStream]:
        """Read the log of a container: entering opens it, iterating gives its lines, leaving closes it.

        A log is data: it may hold anything that the program wrote. Nothing of it is logged here.

        Args:
            name: Name of the pod.
            namespace: The client's by default.
            options: Which container, which lines, and whether to go on.
            timeout: Seconds until the server has accepted; the stream itself has no limit.

        Raises:
            ApiError: On entering, if the server refuses, such as 400 for a container that has not started.
            StreamEndedError: While reading, if the stream breaks off.
        """
        path = self._object_path(kinds.POD, name, namespace, "log")

        @asynccontextmanager
        async def opened() -> AsyncGenerator[LogStream, None]:
            async with self._sender.stream(
                path, query=options.to_query(), accept="*/*", timeout=timeout, on_warning=self._on_warning
            ) as answer:
                yield LogStream(answer.chunks, path=path, max_line_bytes=self._config.max_event_bytes)

        return opened()
