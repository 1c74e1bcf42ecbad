"""Options for lists and watches (``meta.k8s.io/ListOptions``, and ``drop_managed_fields``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from deltaloop._internal.option_types import Options, check_types

if TYPE_CHECKING:
    from deltaloop.api.selectors import LabelSelector

DEFAULT_PAGE_SIZE = 500

ResourceVersionMatch = Literal["", "NotOlderThan", "Exact"]


class ListOptions(Options, frozen=True, kw_only=True):
    """Options of a list or watch request.

    Options that are empty, zero or None are not sent.

    Attributes:
        label_selector: Label selector as text.
        field_selector: Field selector as text.
        shard_selector: Shard selector as text (``str`` of a ``ShardSelector``). Servers without KEP-5866 ignore it.
        resource_version: "" for the most recent state, "0" for any state, or a number for this or a newer state.
        resource_version_match: Interpretation of ``resource_version`` in a list.
        limit: Objects per page. 0 means all objects.
        continue_: Token of the next page.
        timeout_seconds: Time in seconds after which the server ends a watch.
        allow_watch_bookmarks: Whether the server can send bookmarks.
        send_initial_events: Whether a watch starts with the complete state (WatchList). None means the server's
            default.
        drop_managed_fields: Whether to exclude ``metadata.managedFields``. The client requests this in the Accept
            header (``drop=metadata.managedFields``, KEP-5958, alpha in Kubernetes 1.37), and removes the fields itself
            if the server does not support it.
    """

    label_selector: str = ""
    field_selector: str = ""
    shard_selector: str = ""
    resource_version: str = ""
    resource_version_match: ResourceVersionMatch = ""
    limit: int = 0
    continue_: str = ""
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    drop_managed_fields: bool = False

    def __post_init__(self) -> None:
        check_types(self)

    def to_query(self) -> dict[str, str]:
        """Return the query parameters, without ``watch`` and ``drop_managed_fields``."""
        query: dict[str, str] = {}
        texts = {
            "labelSelector": self.label_selector,
            "fieldSelector": self.field_selector,
            "shardSelector": self.shard_selector,
            "resourceVersion": self.resource_version,
            "resourceVersionMatch": self.resource_version_match,
            "continue": self.continue_,
        }
        query.update({name: text for name, text in texts.items() if text})
        if self.limit:
            query["limit"] = str(self.limit)
        if self.timeout_seconds is not None:
            query["timeoutSeconds"] = str(self.timeout_seconds)
        if self.allow_watch_bookmarks:
            query["allowWatchBookmarks"] = "true"
        if self.send_initial_events is not None:
            query["sendInitialEvents"] = "true" if self.send_initial_events else "false"
        return query


def parsed_selector(selector: str | LabelSelector) -> LabelSelector:
    """Return a label selector; its parser is imported on first use."""
    from deltaloop.api.selectors import LabelSelector

    return LabelSelector.parse(selector) if isinstance(selector, str) else selector
