"""What can be asked of a list or a watch: the query parameters of ``meta.k8s.io/ListOptions``, and one thing more."""

from __future__ import annotations

from typing import Literal

from deltaloop._internal.option_types import Options, check_types

ResourceVersionMatch = Literal["", "NotOlderThan", "Exact"]


class ListOptions(Options, frozen=True, kw_only=True):
    """Options of one list or watch request; what is empty, zero or None is not sent.

    Attributes:
        label_selector: Label selector in its text form.
        field_selector: Field selector in its text form.
        resource_version: "" is the most recent state, "0" any state, a number that one or a newer one.
        resource_version_match: How ``resource_version`` is meant for a list.
        limit: Objects in one page; 0 means all.
        continue_: Token of the next page.
        timeout_seconds: After how many seconds the server ends a watch.
        allow_watch_bookmarks: Whether bookmarks are wanted.
        send_initial_events: Whether a watch begins with the whole state (WatchList); None leaves it to the server.
        drop_managed_fields: Whether objects are wanted without ``metadata.managedFields``. Asked for by the Accept
            header (``drop=metadata.managedFields``, KEP-5958, alpha in Kubernetes 1.37); a server that does not know it
            sends them, and they are taken off as the objects are read.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: ResourceVersionMatch = ""
    limit: int = 0
    continue_: str = ""
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    drop_managed_fields: bool = False

    def __post_init__(self) -> None:
        """Refuse values of wrong types."""
        check_types(self)

    def to_query(self) -> dict[str, str]:
        """Return the query parameters, without ``watch``; ``drop_managed_fields`` is none of them."""
        query: dict[str, str] = {}
        texts = {
            "labelSelector": self.label_selector,
            "fieldSelector": self.field_selector,
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
