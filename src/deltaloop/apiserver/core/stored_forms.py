"""What the store of a real server has of an object that nobody can read: a reason to write what looks the same.

An apply of a custom resource with ``labels: {}`` is stored as it is written. Whoever reads the object does not see the
empty map, so the next write of the same object differs from what is stored, and is one: it gives a new resource
version. Which objects are stored like that is kept here, by uid; a restart forgets it.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go (``schemaCoercingDecoder``), which leaves an
applied object as it is; apiserver pkg/storage/etcd3/store.go, which compares bytes.
"""

from __future__ import annotations

from typing import Any, Final, final

from deltaloop.apiserver.core.json_values import mapping
from deltaloop.apiserver.core.served_resource import ServedResource

_HIDDEN: Final = ("labels", "annotations", "finalizers", "ownerReferences")


@final
class StoredForms:
    """Which custom resources are stored with empty metadata fields."""

    def __init__(self) -> None:
        """Know of none."""
        self._empty: dict[str, frozenset[str]] = {}

    def differs(self, served: ServedResource, uid: str, written: dict[str, Any] | None) -> bool:
        """Remember how an object is written now, and tell whether it was stored in another form.

        Args:
            served: Its resource.
            uid: Its uid.
            written: The object as an apply wrote it; None for any other write, which leaves nothing empty.
        """
        if not served.custom:
            return False
        before = self._empty.pop(uid, frozenset[str]())
        metadata = mapping((written or {}).get("metadata"))
        now = frozenset(name for name in _HIDDEN if name in metadata and not metadata[name])
        if now:
            self._empty[uid] = now
        return now != before

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._empty.pop(uid, None)
