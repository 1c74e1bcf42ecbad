"""Decode a list response without decoding its objects.

Each item is copied out of the body, because a slice would keep the complete page in memory while one object is cached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.managed_fields import decode_object_stripped
from deltaloop.api.resource import decode_object, key_in
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError, UnreadableItemsError

T = TypeVar("T")


class _ShardInfo(msgspec.Struct, frozen=True, gc=False):
    selector: str = ""


class _ListMeta(msgspec.Struct, frozen=True, gc=False, rename={"continue_": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the wire name; ``rename`` is taken by ``continue``
    continue_: str = ""
    remainingItemCount: int | None = None  # noqa: N815
    shardInfo: _ShardInfo | None = None  # noqa: N815


class _List(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    metadata: _ListMeta = _ListMeta()


_decode_list: Final = msgspec.json.Decoder(_List).decode


def decode_list(
    resource_type: ResourceType[T],
    body: bytes | bytearray,
    *,
    first_index: int = 0,
    size: int | None = None,
    drop_managed_fields: bool = False,
) -> ResourceList[T]:
    """Decode one page."""
    try:
        page = _decode_list(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedObjectError(_why_not(resource_type, len(body) if size is None else size, error)) from None
    if page.items is msgspec.UNSET:
        raise MalformedObjectError(_why_not(resource_type, len(body) if size is None else size))
    items, unreadable = decode_items(
        resource_type, page.items or (), first_index=first_index, drop_managed_fields=drop_managed_fields
    )
    meta = page.metadata
    decoded = ResourceList(
        items=tuple(items),
        resource_version=meta.resourceVersion,
        continue_=meta.continue_,
        remaining_item_count=meta.remainingItemCount,
        unreadable=tuple(unreadable),
        shard_selector=meta.shardInfo.selector if meta.shardInfo is not None else "",
    )
    if unreadable:
        raise UnreadableItemsError(decoded)
    return decoded


def decode_items(
    resource_type: ResourceType[T],
    raws: Iterable[msgspec.Raw],
    *,
    first_index: int,
    drop_managed_fields: bool = False,
) -> tuple[list[T], list[UnreadableItemError]]:
    items: list[T] = []
    unreadable: list[UnreadableItemError] = []
    decode = decode_object_stripped if drop_managed_fields else decode_object
    for index, raw in enumerate(raws, first_index):
        try:
            items.append(decode(resource_type, raw))
        except MalformedObjectError as error:
            why = f"item {index} of a list of {resource_type}: {error}"
            unreadable.append(UnreadableItemError(why, key=key_in(bytes(raw))))
    return items, unreadable


def _why_not(resource_type: ResourceType[Any], size: int, error: Exception | None = None) -> str:
    what = f"the response to a list of {resource_type} ({size} bytes)"
    if error is None:
        return f"{what} is not a list: the field items is missing"
    if isinstance(error, msgspec.ValidationError):
        return f"{what} is not a list: {error}"
    return f"{what} is not JSON: {error}. Check for a proxy or a login page in front of the server."
