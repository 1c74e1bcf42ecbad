"""The verbs of subresources that are no objects of their kind: scale, eviction, logs, and creating below an object."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, Unpack

from deltaloop.api import kinds
from deltaloop.api.json_writing import write_json
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.options import DeleteOptions, LogOptions, PatchType
from deltaloop.client.verbs.logs import LogStream
from deltaloop.client.verbs.request_keywords import DeleteKeywords, Kind, RequestKeywords, WriteKeywords
from deltaloop.client.verbs.writing import WriteVerbs

SCALE: Final = ResourceType[Resource]("autoscaling", "v1", "Scale", "scales")

_NO_OPTIONS: Final = LogOptions()


class Verbs(WriteVerbs):
    """All verbs; the part ``status`` of an object is in ``get``, ``update_status``, ``patch`` and ``apply``.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    async def get_scale(self, kind: Kind, name: str, **keywords: Unpack[RequestKeywords]) -> Resource:
        """Read the ``Scale`` of an object: wanted and present replicas, and the selector of its pods.

        Raises:
            NotFoundError: If there is no such object, or its kind cannot be scaled.
        """
        known = await self._known(kind, keywords.get("timeout"))
        return Resource.from_json((await self._read(known, name, subresource="scale", **keywords)).raw, SCALE)

    async def scale(
        self, kind: Kind, name: str, replicas: int, *, resource_version: str = "", **keywords: Unpack[WriteKeywords]
    ) -> Resource:
        """Set how many replicas are wanted, whatever field of the kind says so; return the ``Scale``.

        Args:
            kind: What kind of object.
            name: The object's name.
            replicas: How many replicas are wanted.
            resource_version: Only if the object is at this version; empty means at any.
            **keywords: Of the write.

        Raises:
            ConflictError: If the object is not at that version.
        """
        known = await self._known(kind, keywords.get("timeout"))
        patch: dict[str, object] = {"spec": {"replicas": replicas}}
        if resource_version:
            patch["metadata"] = {"resourceVersion": resource_version}
        body = write_json(patch, f"the scale of {known} {name!r}")
        merge = PatchType.MERGE.value
        request = self._request("patch", known, name, body=body, content_type=merge, subresource="scale", **keywords)
        return Resource.from_json(await self._write(request), SCALE)

    async def evict(self, name: str, **keywords: Unpack[DeleteKeywords]) -> None:
        """Delete the pod of a name if its disruption budgets allow it.

        Raises:
            TooManyRequestsError: If a budget does not allow it now.
        """
        metadata = {"name": name, "namespace": self._namespace(kinds.POD, keywords.get("namespace"))}
        eviction: dict[str, object] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if (options := keywords.get("options")) is not None:
            eviction["deleteOptions"] = options.to_dict()
        keywords["options"] = options or DeleteOptions()
        body = write_json(eviction, "the eviction")
        await self._write(self._request("create", kinds.POD, name, body=body, subresource="eviction", **keywords))

    async def create_subresource(
        self,
        kind: Kind,
        name: str,
        subresource: str,
        obj: Mapping[str, Any] | Resource,
        **keywords: Unpack[WriteKeywords],
    ) -> Resource:
        """Create something below an object, such as ``token`` of a service account or ``binding`` of a pod.

        Args:
            kind: What kind of object.
            name: The object's name.
            subresource: Name of the subresource.
            obj: What is sent, with its ``apiVersion`` and ``kind``.
            **keywords: Of the write.
        """
        known = await self._known(kind, keywords.get("timeout"))
        fields = obj.to_dict() if isinstance(obj, Resource) else obj
        body = write_json(fields, f"the {subresource} of {known} {name!r}")
        request = self._request("create", known, name, body=body, subresource=subresource, **keywords)
        return Resource.from_json(await self._write(request))

    @asynccontextmanager
    async def logs(
        self,
        name: str,
        *,
        namespace: str | None = None,
        options: LogOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> AsyncGenerator[LogStream, None]:
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
        place = self._namespace(kinds.POD, namespace)
        path = kinds.POD.path(namespace=place, name=name, subresource="log")
        self._check_access("get", kinds.POD, place, "log")
        async with self._sender.stream(
            path, query=options.to_query(), accept="*/*", timeout=timeout, on_warning=self._on_warning
        ) as answer:
            yield LogStream(answer.chunks, path=path, max_line_bytes=self._config.max_event_bytes)
