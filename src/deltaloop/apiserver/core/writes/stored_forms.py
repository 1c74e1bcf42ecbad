"""What the store of a real server has of an object that nobody can read: a reason to write what looks the same.

An apply of a custom resource with ``labels: {}`` is stored as it is written. So is a null among the bytes of a Secret
or a ConfigMap, and what a write of a scale makes of a custom resource, without the defaults of the fields beside the
replicas. Whoever reads the object does not see the empty map, sees no bytes instead of the null, and sees the defaults.
So the next write of the same object differs from what is stored, and is one: it gives a new resource version. Which
objects are stored like that is kept here, by uid; a restart forgets it.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go (``schemaCoercingDecoder``), which leaves an
applied object as it is; apiserver pkg/storage/etcd3/store.go, which compares bytes.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, final

from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.json_values import mapping

_HIDDEN: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_BYTES: Final = {"configmaps": "binaryData", "secrets": "data"}

Hidden: TypeAlias = frozenset[str]
NOTHING: Final[Hidden] = frozenset()
# What the fields beside the replicas get by default, if there were none before a scale wrote the replicas.
DEFAULTS: Final[Hidden] = frozenset({"defaults"})


def hidden_in(served: ServedResource, sent: dict[str, Any], *, applied: bool) -> Hidden:
    """Return which fields of an object nobody will read as they are stored.

    Args:
        served: Its resource.
        sent: The object before it is read as its kind, which loses them.
        applied: Whether an apply wrote it; any other write leaves no metadata empty.
    """
    if served.custom:
        metadata = mapping(sent.get("metadata")) if applied else {}
        return frozenset(name for name in _HIDDEN if name in metadata and not metadata[name])
    name = _BYTES.get(served.type.group_resource)
    if name is None:
        return NOTHING
    return frozenset(key for key, value in mapping(sent.get(name)).items() if value is None)


@final
class StoredForms:
    """Which objects are stored with such fields."""

    def __init__(self) -> None:
        """Know of none."""
        self._hidden: dict[str, Hidden] = {}
        self._touched: set[str] | None = None  # of a branch

    def branch(self) -> StoredForms:
        """Return a copy that goes its own way, until ``adopt``."""
        copy = StoredForms()
        copy._hidden, copy._touched = dict(self._hidden), set()
        return copy

    def adopt(self, branch: StoredForms) -> None:
        """Take over what a branch has learnt."""
        for uid in branch._touched or ():
            self.differs(uid, branch._hidden.get(uid, NOTHING))

    def differs(self, uid: str, now: Hidden) -> bool:
        """Remember what is hidden in an object as it is written now, and tell whether it was stored in another form."""
        self._touch(uid)
        before = self._hidden.pop(uid, NOTHING)
        if now:
            self._hidden[uid] = now
        return now != before

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._touch(uid)
        self._hidden.pop(uid, None)

    def _touch(self, uid: str) -> None:
        if self._touched is not None:
            self._touched.add(uid)
