"""What a reflector is told to do, and what it makes of what came: the vocabulary between core and driver."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from deltaloop._internal.pacing import Wait
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread


class ListPage(msgspec.Struct, frozen=True):
    """Ask for one page of a list; answer with ``listed`` or ``list_failed``."""

    options: ListOptions


class OpenWatch(msgspec.Struct, frozen=True):
    """Open a watch and read it; answer with ``watch_opened``, then what the stream brings, or ``watch_failed``."""

    options: ListOptions


class OpenWatchList(msgspec.Struct, frozen=True):
    """Open a watch that begins with the whole state; answer with ``watch_list_opened`` or ``watch_list_failed``.

    Then feed ``initial_event`` until it returns ``CompleteList``, and then as for a watch. Give up at ``give_up_at``.
    """

    options: ListOptions


class Probe(msgspec.Struct, frozen=True):
    """Ask for one object of the newest list, for its version; answer with ``probed`` or ``probe_failed``."""

    options: ListOptions


Effect: TypeAlias = ListPage | OpenWatchList | OpenWatch | Probe | Wait


class CompleteList(msgspec.Struct, frozen=True):
    """A complete list: the store now holds these objects and no others.

    Attributes:
        items: The objects of all pages, or of the streamed list.
        resource_version: The ``resourceVersion`` of the list, from which the watch begins.
        skipped: How many objects are left out, because they cannot be read or have no name.
        first_error: Why the first of them cannot be read, if it is that.
        unread: Which of them cannot be read: they exist, and are not to be taken for deleted.
    """

    items: tuple[Resource, ...]
    resource_version: str
    skipped: int
    first_error: Exception | None = None
    unread: Unread = NOTHING_UNREAD


class Verdict(Enum):
    """What to do with an event."""

    APPLY = "apply"
    BOOKMARK = "bookmark"
    SKIP = "skip"
    HOLD = "hold"
