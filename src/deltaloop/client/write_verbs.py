"""The verbs that write: create, update, patch, apply, delete, delete a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, Unpack, overload

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.json_writing import write_json
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.caller import Caller, decoded
from deltaloop.client.core.answers import is_status
from deltaloop.client.core.list_decoding import decode_list
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.client.options import DeleteOptions, PatchType, WriteOptions
from deltaloop.client.request_keywords import ApplyKeywords, DeleteKeywords, WriteKeywords
from deltaloop.client.resource_list import ResourceList

T = TypeVar("T")

_EVERYTHING: Final = ListOptions()


class WriteVerbs(Caller):
    """The verbs that change objects.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    @overload
    async def create(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def create(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def create(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Create an object and return it as stored; ``metadata.generateName`` works in place of a name.

        Raises:
            AlreadyExistsError: If there is one of that name.
        """
        known = await self._known(rt, timeout)
        outgoing = encode_object(known, obj)
        path = known.path(namespace=self._namespace(known, namespace or outgoing.namespace))
        query = self._write_query(options)
        return decoded(known, await self._send("POST", path, query=query, body=outgoing.body, timeout=timeout))

    @overload
    async def update(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace an object and return it as stored; where there is a status subresource, ``status`` stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
        """
        return await self._replace(rt, obj, None, namespace, options, timeout)

    @overload
    async def update_status(self, rt: ResourceType[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update_status(self, rt: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update_status(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Replace the ``status`` of an object and return it as stored; everything else stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
            NotFoundError: If the kind has no status subresource, or there is no such object.
        """
        return await self._replace(rt, obj, "status", namespace, options, timeout)

    @overload
    async def patch(
        self,
        rt: ResourceType[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = ...,
        **keywords: Unpack[ApplyKeywords],
    ) -> T: ...
    @overload
    async def patch(
        self,
        rt: str,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        type: PatchType = ...,
        **keywords: Unpack[ApplyKeywords],
    ) -> Resource: ...
    async def patch(
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

        A ``metadata.resourceVersion`` in a merge patch makes it conditional, in a JSON patch a ``test`` operation does.

        Args:
            rt: What kind of object.
            name: Its name.
            patch: A mapping; for a JSON patch (RFC 6902) a list of operations. In a merge patch (RFC 7386) None removes
                a field.
            type: How the patch is meant. Strategic merge, which merges lists by key, is for built-in kinds only.
            namespace: The client's by default.
            subresource: Such as ``status``.
            force: For apply only: take fields over from other managers.
            options: Dry run, field manager, field validation.
            timeout: Seconds.

        Raises:
            ConflictError: If that version is not the present one; for apply, if another manager has one of the fields.
            InvalidArgumentError: If the patch does not fit its type.
        """
        known = await self._known(rt, timeout)
        if isinstance(patch, Mapping) == (type is PatchType.JSON):
            wanted = "a list of operations" if type is PatchType.JSON else "a mapping"
            raise InvalidArgumentError(f"{known} {name!r}: a patch of type {type.name} is {wanted}")
        query = self._write_query(options, type)
        if force:
            if type is not PatchType.APPLY:
                raise InvalidArgumentError("force is for apply only: no other patch has conflicts between managers")
            query["force"] = "true"
        path = self._object_path(known, name, namespace, subresource)
        body = write_json(patch, f"the patch of {known} {name!r}")
        answer = await self._send("PATCH", path, query=query, body=body, content_type=type.value, timeout=timeout)
        return decoded(known, answer)

    @overload
    async def apply(self, rt: ResourceType[T], obj: object, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    async def apply(self, rt: str, obj: object, **keywords: Unpack[ApplyKeywords]) -> Resource: ...
    async def apply(
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
        """Server-side apply: say which fields this manager wants to have, creating the object if it is missing.

        Give the fields that are yours and no others; fields that were given before and are now missing are removed.

        Args:
            rt: What kind of object.
            obj: Name and wanted fields; an object as read from the server is refused by it (``managedFields``).
            namespace: The object's own, else the client's, by default.
            subresource: Such as ``status``.
            force: Take fields over from other managers; controllers should, for fields that they own.
            options: Dry run, field manager, field validation.
            timeout: Seconds.

        Raises:
            ConflictError: If another manager has one of the fields and ``force`` is not set.
            MalformedObjectError: If the object has no name.
        """
        known = await self._known(rt, timeout)
        outgoing = encode_object(known, obj)
        if not outgoing.name:
            raise MalformedObjectError(f"the {known} object has no metadata.name: it cannot be applied")
        query = self._write_query(options, PatchType.APPLY)
        if force:
            query["force"] = "true"
        answer = await self._send(
            "PATCH",
            self._object_path(known, outgoing.name, namespace or outgoing.namespace, subresource),
            query=query,
            body=outgoing.body,
            content_type=PatchType.APPLY.value,
            timeout=timeout,
        )
        return decoded(known, answer)

    @overload
    async def delete(self, rt: ResourceType[T], name: str, **keywords: Unpack[DeleteKeywords]) -> T | None: ...
    @overload
    async def delete(self, rt: str, name: str, **keywords: Unpack[DeleteKeywords]) -> Resource | None: ...
    async def delete(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete an object, or mark it for deletion if finalizers or a grace period hold it.

        Returns:
            The object, where the server answers with it (it is still there, or has just gone), else None.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If a precondition of ``options`` does not hold.
        """
        known = await self._known(rt, timeout)
        path = self._object_path(known, name, namespace)
        answer = await self._send("DELETE", path, body=_delete_body(options), timeout=timeout)
        return None if is_status(answer.body) else decoded(known, answer)

    @overload
    async def delete_collection(
        self, rt: ResourceType[T], *, selection: ListOptions = ..., **keywords: Unpack[DeleteKeywords]
    ) -> ResourceList[T] | None: ...
    @overload
    async def delete_collection(
        self, rt: str, *, selection: ListOptions = ..., **keywords: Unpack[DeleteKeywords]
    ) -> ResourceList[Resource] | None: ...
    async def delete_collection(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        selection: ListOptions = _EVERYTHING,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete all objects of a namespace, or of a kind without namespaces, or those that ``selection`` selects.

        A namespace must be named: what deletes much takes no default.

        Returns:
            The objects, where the server answers with them, else None.

        Raises:
            InvalidArgumentError: If the kind has namespaces and none is given.
        """
        known = await self._known(rt, timeout)
        if known.namespaced and not namespace:
            raise InvalidArgumentError(f"delete_collection of {known} needs a namespace: it takes no default")
        query = selection.to_query()
        path = known.path(namespace=namespace)
        answer = await self._send("DELETE", path, query=query, body=_delete_body(options), timeout=timeout)
        return None if is_status(answer.body) else decode_list(known, answer.body)

    async def _replace(
        self,
        rt: ResourceType[Any] | str,
        obj: object,
        subresource: str | None,
        namespace: str | None,
        options: WriteOptions | None,
        timeout: float | None,
    ) -> Any:
        known = await self._known(rt, timeout)
        outgoing = encode_object(known, obj)
        if not outgoing.name:
            raise MalformedObjectError(f"the {known} object has no metadata.name: it cannot be updated")
        path = self._object_path(known, outgoing.name, namespace or outgoing.namespace, subresource)
        query = self._write_query(options)
        return decoded(known, await self._send("PUT", path, query=query, body=outgoing.body, timeout=timeout))


def _delete_body(options: DeleteOptions | None) -> bytes | None:
    return None if options is None else write_json(options.to_dict(), "the delete options")
