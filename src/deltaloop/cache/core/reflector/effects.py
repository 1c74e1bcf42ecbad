"""Effects that the reflector's state machine requests from its driver, and its verdicts on events."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from deltaloop._internal.pacing import Wait
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread


class ListPage(msgspec.Struct, frozen=True):
    """Request one page of a list, then feed ``listed`` or ``list_failed``."""

    options: ListOptions


class OpenWatch(msgspec.Struct, frozen=True):
    """Open a watch and read it. Feed ``watch_opened`` and the events, or ``watch_failed``."""

    options: ListOptions


class OpenWatchList(msgspec.Struct, frozen=True):
    """Open a watch that begins with the complete state; feed ``watch_list_opened`` or ``watch_list_failed``.

    Then feed ``initial_event`` until it returns ``CompleteList``, and continue as for a watch, until ``give_up_at``.
    """

    options: ListOptions


class Probe(msgspec.Struct, frozen=True):
    """Request a list of one object to get the newest version. Feed ``probed`` or ``probe_failed``."""

    options: ListOptions


Effect: TypeAlias = ListPage | OpenWatchList | OpenWatch | Probe | Wait


class CompleteList(msgspec.Struct, frozen=True):
    """A complete list, which replaces the content of the store.

    Attributes:
        skipped: Number of omitted objects, which are unreadable or have no name.
        unread: Unreadable objects. They exist and must not be treated as deleted.
    """

    items: tuple[Resource, ...]
    resource_version: str
    skipped: int
    first_error: Exception | None = None
    unread: Unread = NOTHING_UNREAD


class Verdict(Enum):
    APPLY = "apply"
    BOOKMARK = "bookmark"
    SKIP = "skip"
    HOLD = "hold"
