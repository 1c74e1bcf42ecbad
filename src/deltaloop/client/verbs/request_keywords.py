"""Keyword arguments of the verbs, shared by their overloads."""

from __future__ import annotations

from typing import TypedDict

from deltaloop.api.list_options import ListOptions
from deltaloop.api.selectors import LabelSelector
from deltaloop.client.options import DeleteOptions, PatchType, WriteOptions


class RequestKeywords(TypedDict, total=False):
    """Optional keywords of all verbs.

    Attributes:
        namespace: Namespace. None means the client's namespace, or all namespaces for lists and watches.
        timeout: Timeout in seconds. None means the client's timeout.
    """

    namespace: str | None
    timeout: float | None


class WaitKeywords(RequestKeywords, total=False):
    """Keywords of ``wait_for``, whose timeout applies to the complete wait.

    Attributes:
        ignore_deletion: Whether to continue if the object is deleted, because an object of the same name may be
            created.
    """

    ignore_deletion: bool


class GetKeywords(RequestKeywords, total=False):
    """Keywords of verbs that read an object.

    Attributes:
        subresource: Subresource that has the object's own type, such as ``status``.
    """

    subresource: str | None


class ListKeywords(RequestKeywords, total=False):
    """Keywords of verbs that read several objects.

    Attributes:
        options: Selectors, resource version and limit.
        selector: Label selector, such as ``app=web,!canary``. It replaces ``options.label_selector``.
    """

    options: ListOptions
    selector: str | LabelSelector | None


class WriteKeywords(RequestKeywords, total=False):
    """Keywords of verbs that store an object.

    Attributes:
        options: Dry run, field manager and field validation.
    """

    options: WriteOptions | None


class SubresourceWriteKeywords(WriteKeywords, total=False):
    """Keywords of writes that can target a subresource.

    Attributes:
        subresource: Subresource, such as ``status``.
    """

    subresource: str | None


class PatchKeywords(SubresourceWriteKeywords, total=False):
    """Keywords of patches.

    Attributes:
        type: Patch format. The default is a merge patch.
    """

    type: PatchType


class ApplyKeywords(SubresourceWriteKeywords, total=False):
    """Keywords of server-side apply.

    Attributes:
        force: Whether to take ownership of fields from other managers.
    """

    force: bool


class DeleteKeywords(RequestKeywords, total=False):
    """Keywords of deletions.

    Attributes:
        options: Preconditions, grace period, propagation policy and dry run.
    """

    options: DeleteOptions | None


class DeleteCollectionKeywords(DeleteKeywords, total=False):
    """Keywords of deletions of several objects.

    Attributes:
        selection: Selectors of the objects. By default, all objects are deleted.
        selector: Label selector. It replaces ``selection.label_selector``.
    """

    selection: ListOptions
    selector: str | LabelSelector | None
