"""Reads the answer to a list request without building its objects.

The items are taken as slices of the body, and each is copied out of it: a slice would keep the whole page of some
megabytes alive for as long as one object of it is cached.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import decode_object
from deltaloop.api.resource_type import ResourceType
from deltaloop.client.resource_list import ResourceList

T = TypeVar("T")


class _ListMeta(msgspec.Struct, frozen=True, gc=False, rename={"continue_": "continue"}):
    resourceVersion: str = ""  # noqa: N815 - the wire name; ``rename`` is taken by ``continue``
    continue_: str = ""
    remainingItemCount: int | None = None  # noqa: N815


class _List(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None
    metadata: _ListMeta = _ListMeta()


_decode_list: Final = msgspec.json.Decoder(_List).decode


def decode_list(
    resource_type: ResourceType[T], body: bytes | bytearray, *, first_index: int = 0, size: int | None = None
) -> ResourceList[T]:
    """Decode one page.

    Args:
        resource_type: What the items are.
        body: The answer.
        first_index: Index of the first item in errors, where items before it were taken off the body already.
        size: Bytes of the whole body in errors, for the same case.

    Raises:
        MalformedObjectError: If the body is not JSON, is not a list, or holds an item that is not an object of the
            type; the message says which item and has no data of it.
    """
    try:
        page = _decode_list(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedObjectError(_why_not(resource_type, len(body) if size is None else size, error)) from None
    items: list[T] = []
    for index, raw in enumerate(page.items or (), first_index):
        try:
            items.append(decode_object(resource_type, raw))
        except MalformedObjectError as error:
            raise not_an_item(resource_type, index, error) from None
    meta = page.metadata
    return ResourceList(
        items=tuple(items),
        resource_version=meta.resourceVersion,
        continue_=meta.continue_,
        remaining_item_count=meta.remainingItemCount,
    )


def not_an_item(resource_type: ResourceType[Any], index: int, error: MalformedObjectError) -> MalformedObjectError:
    """Say which item of a list it was."""
    return MalformedObjectError(f"item {index} of a list of {resource_type}: {error}")


def _why_not(resource_type: ResourceType[Any], size: int, error: Exception) -> str:
    what = f"the answer to a list of {resource_type}, {size} bytes,"
    if "missing required field `items`" in str(error):
        return f"{what} is not a list: it has no items"
    if isinstance(error, msgspec.ValidationError):
        return f"{what} is not a list: {error}"
    return f"{what} is not JSON; is a proxy or a login page in the way? ({error})"
