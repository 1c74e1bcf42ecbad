"""What may be said about a request beside what it is about: the keyword arguments of verbs.

Each verb has two signatures, one for each way to name a resource; what both have is written down once, here.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.selectors import LabelSelector
from deltaloop.client.options import DeleteOptions, PatchType, WriteOptions

Kind: TypeAlias = ResourceType[Any] | type[Any] | str
"""What kind of object: a resource type, a class that ``custom_resource`` made a kind, or a name such as ``v1/Pod``."""


class RequestKeywords(TypedDict, total=False):
    """Of every verb; everything may be left out.

    Attributes:
        namespace: The client's by default; for lists and watches, None means all.
        timeout: Seconds that the request may take; None is the client's own limit.
    """

    namespace: str | None
    timeout: float | None


class WaitKeywords(RequestKeywords, total=False):
    """Of ``wait_for``; the time limit is that of the whole wait.

    Attributes:
        ignore_deletion: Whether to continue when the object is deleted, because another one of its name may come.
    """

    ignore_deletion: bool


class GetKeywords(RequestKeywords, total=False):
    """Of verbs that read an object.

    Attributes:
        subresource: One that has the object's own type, such as ``status``.
    """

    subresource: str | None


class ListKeywords(RequestKeywords, total=False):
    """Of verbs that read many objects.

    Attributes:
        options: Which ones, and of which version.
        selector: Which ones by their labels, such as ``app=web,!canary``, in place of ``options.label_selector``.
    """

    options: ListOptions
    selector: str | LabelSelector | None


class WriteKeywords(RequestKeywords, total=False):
    """Of verbs that store an object.

    Attributes:
        options: Dry run, field manager, field validation.
    """

    options: WriteOptions | None


class SubresourceWriteKeywords(WriteKeywords, total=False):
    """Of verbs that may mean a part of an object.

    Attributes:
        subresource: Such as ``status``.
    """

    subresource: str | None


class PatchKeywords(SubresourceWriteKeywords, total=False):
    """Of patches.

    Attributes:
        type: How the patch is meant; a merge patch by default.
    """

    type: PatchType


class ApplyKeywords(SubresourceWriteKeywords, total=False):
    """Of server-side apply.

    Attributes:
        force: Take fields over from other managers.
    """

    force: bool


class DeleteKeywords(RequestKeywords, total=False):
    """Of deletions.

    Attributes:
        options: Preconditions, grace period, propagation, dry run.
    """

    options: DeleteOptions | None


class DeleteCollectionKeywords(DeleteKeywords, total=False):
    """Of deletions of many objects.

    Attributes:
        selection: Which ones; all by default.
        selector: Which ones by their labels, in place of ``selection.label_selector``.
    """

    selection: ListOptions
    selector: str | LabelSelector | None
