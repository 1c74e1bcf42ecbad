"""What may be said about a request beside what it is about: the keyword arguments of verbs; no core.

Each verb has two signatures, one for each way to name a resource; what both have is written down once, here.
"""

from __future__ import annotations

from typing import TypedDict

from deltaloop.client.options import DeleteOptions, WriteOptions


class RequestKeywords(TypedDict, total=False):
    """Of every verb; everything may be left out.

    Attributes:
        namespace: The client's by default; for lists, None means all.
        timeout: Seconds that the request may take; None is the client's own limit.
    """

    namespace: str | None
    timeout: float | None


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
