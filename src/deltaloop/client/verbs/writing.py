"""The verbs that write: create, update, patch, apply, delete, delete a collection, and what many programs do with them.

Conflicts of ``create_or_update`` are not hidden; those of finalizers are tried again, because nothing else of the
object matters to them.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, Unpack, cast, overload

from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.json_comparing import is_same_json
from deltaloop.api.json_writing import json_for_yaml, plain_fields, write_json
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, typed, untyped
from deltaloop.api.resource_type import ResourceType, TypedKind
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.set_fields import set_fields
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.client.core.answers import is_status
from deltaloop.client.core.edited_objects import edit_patch, refuse_what_no_edit_changes
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.client.options import DeleteOptions, PatchType, WriteOptions
from deltaloop.client.verbs.base_client import EVERYTHING, WriteRequest, WriteVerb, not_found, selected
from deltaloop.client.verbs.reading import ReadVerbs
from deltaloop.client.verbs.request_keywords import (
    ApplyKeywords,
    DeleteCollectionKeywords,
    DeleteKeywords,
    Kind,
    PatchKeywords,
    SubresourceWriteKeywords,
    WriteKeywords,
)
from deltaloop.client.verbs.resource_list import ResourceList

T = TypeVar("T")
W = TypeVar("W")

_APPLY: Final = "application/apply-patch+yaml"
_CONFLICT_TRIES: Final = 5


if TYPE_CHECKING:
    from deltaloop.types.written import KindOf, Written
Change: TypeAlias = Callable[[dict[str, Any]], object]
Patch: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]


class OperationResult(Enum):
    """What ``create_or_update`` did."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    UPDATED = "updated"


class WriteVerbs(ReadVerbs):
    """The verbs that change objects.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    @overload
    async def create(self, kind: KindOf[T, W], obj: W | Written, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def create(self, kind: type[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def create(self, kind: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def create(self, kind: Any, obj: object, **keywords: Unpack[WriteKeywords]) -> Any:
        """Create an object and return it as stored; ``metadata.generateName`` works in place of a name.

        Raises:
            AlreadyExistsError: If there is one of that name.
        """
        return await self._store("create", kind, obj, **keywords)

    @overload
    async def update(self, kind: KindOf[T, W], obj: W | Written, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update(self, kind: type[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update(self, kind: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update(self, kind: Any, obj: object, **keywords: Unpack[WriteKeywords]) -> Any:
        """Replace an object and return it as stored; where there is a status subresource, ``status`` stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
        """
        return await self._store("update", kind, obj, **keywords)

    @overload
    async def update_status(self, kind: TypedKind[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update_status(self, kind: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update_status(self, kind: Kind, obj: object, **keywords: Unpack[WriteKeywords]) -> Any:
        """Replace the ``status`` of an object and return it as stored; everything else stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
            NotFoundError: If the kind has no status subresource, or there is no such object.
        """
        return await self._store("update", kind, obj, subresource="status", **keywords)

    @overload
    async def apply(self, kind: KindOf[T, W], obj: W | Written, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    async def apply(self, kind: type[T], obj: object, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    async def apply(self, kind: str, obj: object, **keywords: Unpack[ApplyKeywords]) -> Resource: ...
    async def apply(self, kind: Any, obj: object, **keywords: Unpack[ApplyKeywords]) -> Any:
        """Server-side apply: say which fields this manager wants to have, creating the object if it is missing.

        Give the fields that are yours and no others; fields that were given before and are now missing are removed. An
        object as read from the server is refused by it (``managedFields``). Controllers should ``force`` what they own.

        Raises:
            ConflictError: If another manager has one of the fields and ``force`` is not set.
            MalformedObjectError: If the object has no name.
        """
        return await self._store("apply", kind, obj, **keywords)

    @overload
    async def patch(self, kind: TypedKind[T], name: str, patch: Patch, **keywords: Unpack[PatchKeywords]) -> T: ...
    @overload
    async def patch(self, kind: str, name: str, patch: Patch, **keywords: Unpack[PatchKeywords]) -> Resource: ...
    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the API's word
        **keywords: Unpack[SubresourceWriteKeywords],
    ) -> Any:
        """Change an object and return it as stored; ``apply`` is the verb of server-side apply.

        A ``metadata.resourceVersion`` in a merge patch makes it conditional, in a JSON patch a ``test`` operation does.

        Args:
            kind: What kind of object.
            name: The object's name.
            patch: A mapping; for a JSON patch (RFC 6902) a list of operations. In a merge patch (RFC 7386) None removes
                a field.
            type: How the patch is meant. Strategic merge, which merges lists by key, is for built-in kinds only.
            **keywords: Of the write.

        Raises:
            ConflictError: If that version is not the present one.
            InvalidArgumentError: If the patch does not fit its type.
        """
        known = await self._known(kind, keywords.get("timeout"))
        if isinstance(patch, Mapping) == (type is PatchType.JSON):
            wanted = "a list of operations" if type is PatchType.JSON else "a mapping"
            raise InvalidArgumentError(f"{known} {name!r}: a patch of type {type.name} is {wanted}")
        body = write_json(patch, f"the patch of {known} {name!r}")
        request = self._request(
            "patch", known, name, body=body, content_type=type.value, version=_version(patch), **keywords
        )
        return self._answered(known, await self._write(request))

    @overload
    async def delete(self, kind: TypedKind[T], name: str, **keywords: Unpack[DeleteKeywords]) -> T | None: ...
    @overload
    async def delete(self, kind: str, name: str, **keywords: Unpack[DeleteKeywords]) -> Resource | None: ...
    async def delete(self, kind: Kind, name: str, **keywords: Unpack[DeleteKeywords]) -> Any:
        """Delete an object, or mark it for deletion if finalizers or a grace period hold it.

        Returns:
            The object, where the server answers with it (it is still there, or has just gone), else None.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If a precondition of ``options`` does not hold.
        """
        known = await self._known(kind, keywords.get("timeout"))
        body = await self._write(self._request("delete", known, name, **keywords))
        return None if is_status(body) else self._answered(known, body)

    @overload
    async def delete_collection(
        self, kind: TypedKind[T], **keywords: Unpack[DeleteCollectionKeywords]
    ) -> ResourceList[T] | None: ...
    @overload
    async def delete_collection(
        self, kind: str, **keywords: Unpack[DeleteCollectionKeywords]
    ) -> ResourceList[Resource] | None: ...
    async def delete_collection(
        self,
        kind: Kind,
        *,
        selection: ListOptions = EVERYTHING,
        selector: str | LabelSelector | None = None,
        **keywords: Unpack[DeleteKeywords],
    ) -> Any:
        """Delete all objects of a namespace, or of a kind without namespaces, or those that are selected.

        A namespace must be named: what deletes much takes no default.

        Returns:
            The objects, where the server answers with them, else None.

        Raises:
            InvalidArgumentError: If the kind has namespaces and none is given.
        """
        known = await self._known(kind, keywords.get("timeout"))
        if known.namespaced and not keywords.get("namespace"):
            raise InvalidArgumentError(f"delete_collection of {known} needs a namespace: it takes no default")
        query = selected(selection, selector).to_query()
        body = await self._write(self._request("delete_collection", known, "", query=query, **keywords))
        if is_status(body):
            return None
        from deltaloop.client.core.list_decoding import decode_list

        return decode_list(known, body)

    @overload
    async def create_or_update(
        self, kind: TypedKind[T], name: str, change: Change, **keywords: Unpack[WriteKeywords]
    ) -> tuple[OperationResult, T]: ...
    @overload
    async def create_or_update(
        self, kind: str, name: str, change: Change, **keywords: Unpack[WriteKeywords]
    ) -> tuple[OperationResult, Resource]: ...
    async def create_or_update(
        self,
        kind: Kind,
        name: str,
        change: Change,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Bring one object into the wanted shape: create it if it is missing, update it if ``change`` changes it.

        A conflict is not hidden: a reconcile fails and runs again with what is there then, as upstream has it.

        Args:
            kind: What kind of object.
            name: The object's name.
            change: Gets the object as a dict (of a missing one: its names only) and sets what it is to have; it must
                not change name or namespace. It is called on the event loop.
            namespace: The client's by default.
            options: Of the write.
            timeout: Seconds for each request.

        Returns:
            What was done, and the object as it is stored.

        Raises:
            ConflictError: If another program changed the object meanwhile.
            AlreadyExistsError: If another program created it meanwhile.
            InvalidArgumentError: If ``change`` changed the names.

        Source: controller-runtime pkg/controller/controllerutil ``CreateOrUpdate``.
        """
        known = await self._known(kind, timeout)
        raw_type, place = untyped(known), self._namespace(known, namespace)
        present = await self.find(raw_type, name, namespace=place, timeout=timeout)
        fields = present.edit() if present is not None else _blank(known, name, place)
        names = _names(fields)
        change(fields)
        if _names(fields) not in (names, None):
            raise InvalidArgumentError(f"create_or_update of {known} {name!r}: the change must not change its names")
        if present is None:
            made = await self.create(known, fields, namespace=place, options=options, timeout=timeout)
            return OperationResult.CREATED, made
        same = is_same_json(fields, present.to_dict())
        if same is None:  # it holds a view or a typed object, which is what it is written as
            same = Resource.from_dict(fields, raw_type) == present
        if same:
            return OperationResult.UNCHANGED, typed(known, present)
        made = await self.update(known, fields, namespace=place, options=options, timeout=timeout)
        return OperationResult.UPDATED, made

    async def edit(
        self, kind: TypedKind[T], name: str, change: Callable[[T], T | None], **keywords: Unpack[WriteKeywords]
    ) -> T:
        """Change one object of a class, and return it as stored: what ``change`` sets is sent, and nothing else.

        A merge patch with the version that was read is sent, if anything has changed. What the class does not have
        stays as it is, and a default that nobody set stays absent. A field that is set to None or ``UNSET`` is taken
        away. A conflict is not hidden, as that of ``create_or_update``.

        Args:
            kind: The class, or its resource type.
            name: The object's name.
            change: Gets the object, and sets fields of it, or returns another one in its place, such as one of
                ``msgspec.structs.replace``. It is called on the event loop.
            **keywords: Of the write.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If another program changed the object meanwhile.
            MalformedObjectError: If the object does not fit the class.
            InvalidArgumentError: If the kind has no class, or ``change`` changed names, or the status of a kind whose
                status is a subresource.
        """
        return await self._edit(kind, name, change, **keywords)

    async def add_finalizer(self, kind: TypedKind[T] | str, obj: T, name: str, **keywords: Unpack[WriteKeywords]) -> T:
        """See to it that an object has a finalizer, and return it as stored; conflicts are tried again.

        Nothing but the finalizers is sent, as a merge patch: the object may lack what a cache's transform dropped. An
        object that has the finalizer is read again, because it may be an old state of the object.

        Raises:
            NotFoundError: If the object is gone.
            ConflictError: If it changes all the time.
        """
        return await self._change_finalizers(kind, obj, lambda present: dict.fromkeys((*present, name)), **keywords)

    async def remove_finalizer(
        self, kind: TypedKind[T] | str, obj: T, name: str, **keywords: Unpack[WriteKeywords]
    ) -> T | None:
        """See to it that an object does not have a finalizer, and return it as stored; None if it is gone.

        An object that does not have the finalizer is read again, because it may be an old state of the object.

        Raises:
            ConflictError: If the object changes all the time.
        """
        try:
            return await self._change_finalizers(kind, obj, lambda present: filter(name.__ne__, present), **keywords)
        except NotFoundError:
            return None

    # -- how

    async def _edit(
        self,
        kind: TypedKind[T],
        name: str,
        change: Callable[[T], T | None],
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> T:
        known = await self._known(kind, timeout)
        if known.model in (None, Resource, dict, bytes):
            raise InvalidArgumentError(f"{known} has no class that could be edited: use patch, or create_or_update")
        present = await self.get(untyped(known), name, namespace=namespace, timeout=timeout)
        obj = typed(known, present)
        before = plain_fields(obj)
        changed = change(obj)
        edited = obj if changed is None else changed
        patch = edit_patch(present.to_dict(), before, plain_fields(edited), set_fields(edited))
        if not patch:
            return edited
        refuse_what_no_edit_changes(known, patch)
        base = {"uid": present.uid, "resourceVersion": present.resource_version}
        patch["metadata"] = {**patch.get("metadata", {}), **base}
        return await self.patch(known, name, patch, namespace=namespace, options=options, timeout=timeout)

    async def _change_finalizers(
        self,
        kind: TypedKind[T] | str,
        obj: T,
        change: Callable[[Sequence[str]], Iterable[str]],
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> T:
        known = await self._known(kind, timeout)
        raw_type = untyped(known)
        present = obj if isinstance(obj, Resource) else Resource.from_json(encode_object(known, obj).body, raw_type)
        name, uid, place = present.name, present.uid, namespace or present.namespace or None
        if not name:
            raise MalformedObjectError(
                f"the {known} object has no metadata.name, which its finalizers need", given=True
            )

        def checked(found: Resource) -> Resource:
            if uid and found.uid != uid:
                raise not_found(known, name)
            return found

        async def asked_anew() -> Resource:
            # The server is asked, and no cache: it is not of the cache that the conflict was.
            return checked(await super(WriteVerbs, self)._read(raw_type, name, namespace=place, timeout=timeout))

        if not present.resource_version:  # a patch replaces the whole list
            present = await asked_anew()
        elif [*change(present.finalizers)] == [*present.finalizers]:
            # The object may have been read before the finalizers changed, so it cannot show that nothing is to be done.
            present = checked(await self._read(raw_type, name, namespace=place, timeout=timeout))
        for attempt in range(_CONFLICT_TRIES):
            finalizers = [*change(present.finalizers)]
            if finalizers == [*present.finalizers]:
                break
            base = {"uid": present.uid, "resourceVersion": present.resource_version}
            patch = {"metadata": {**base, "finalizers": finalizers}}
            try:
                return await self.patch(known, name, patch, namespace=place, options=options, timeout=timeout)
            except ConflictError:
                if attempt + 1 == _CONFLICT_TRIES:
                    raise
            present = await asked_anew()
        return typed(known, present)

    async def _store(
        self,
        verb: Literal["create", "update", "apply"],
        kind: Kind,
        obj: object,
        *,
        force: bool = False,
        **keywords: Unpack[SubresourceWriteKeywords],
    ) -> Any:
        known = await self._known(kind, keywords.get("timeout"))
        try:
            return await self._store_once(verb, known, obj, force=force, **keywords)
        except NotFoundError:
            current = await self._known(kind, keywords.get("timeout"))
            if current.api_version == known.api_version:
                raise
            return await self._store_once(verb, current, obj, force=force, **keywords)

    async def _store_once(
        self,
        verb: Literal["create", "update", "apply"],
        known: ResourceType[Any],
        obj: object,
        *,
        force: bool,
        **keywords: Unpack[SubresourceWriteKeywords],
    ) -> Any:
        outgoing = encode_object(known, obj)
        keywords["namespace"] = keywords.get("namespace") or outgoing.namespace
        if not outgoing.name and verb != "create":
            raise MalformedObjectError(f"the {known} object has no metadata.name, which {verb} needs", given=True)
        request = self._request(
            verb,
            known,
            outgoing.name,
            body=json_for_yaml(outgoing.body) if verb == "apply" else outgoing.body,
            content_type=_APPLY if verb == "apply" else "application/json",
            version=outgoing.version,
            generate_name=outgoing.generate_name,
            query={"force": "true"} if force else None,
            **keywords,
        )
        return self._answered(known, await self._write(request))

    def _request(
        self,
        verb: WriteVerb,
        known: ResourceType[Any],
        name: str,
        *,
        namespace: str | None = None,
        options: WriteOptions | DeleteOptions | None = None,
        query: Mapping[str, str] | None = None,
        **more: Any,
    ) -> WriteRequest:
        """Return a write; ``more`` are other attributes of it."""
        asked = dict(query or {})
        if verb not in ("delete", "delete_collection") and not isinstance(options, DeleteOptions):
            if self._options.field_manager:
                asked["fieldManager"] = self._options.field_manager
            if self._options.field_validation:
                asked["fieldValidation"] = self._options.field_validation
            if options is not None:
                asked.update(options.to_query())
            if verb == "apply":
                # Apply must name a manager; this is the name that the server gives other writes by the user agent.
                asked.setdefault("fieldManager", self._config.user_agent.partition("/")[0] or "deltaloop")
        place = self._namespace(known, namespace)
        return WriteRequest(
            verb=verb, resource_type=known, name=name, namespace=place, query=asked, options=options, **more
        )


def _version(patch: Patch) -> str:
    """Return the version on which a patch is conditional; empty for none."""
    metadata = patch.get("metadata") if isinstance(patch, Mapping) else None
    if not isinstance(metadata, Mapping):
        return ""
    return str(cast("Mapping[str, object]", metadata).get("resourceVersion") or "")


def _names(fields: Mapping[str, object]) -> tuple[object, object] | None:
    """Return name and namespace; None if there are no metadata, which whoever writes the object will find."""
    metadata = fields.get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    named = cast("Mapping[str, object]", metadata)
    return named.get("name") or "", named.get("namespace") or ""


def _blank(known: ResourceType[Any], name: str, namespace: str | None) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": known.api_version, "kind": known.kind, "metadata": metadata}
