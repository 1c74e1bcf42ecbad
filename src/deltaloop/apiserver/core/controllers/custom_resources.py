"""Deletion of the objects of terminating CRDs, in slices.

    few objects         the request deletes them (``ServerState.delete_few``)
    more                each step deletes a slice
    with finalizers     they are marked, and the removal of the last object releases the CRD

Source: apiextensions-apiserver pkg/controller/finalizer.
"""

from __future__ import annotations

from typing import Final, final

from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError
from deltaloop.apiserver.core.crds.definition import CLEANUP_FINALIZER
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.writes.crd_lifecycle import CRDS
from deltaloop.apiserver.core.writes.server_state import ServerState

MOST: Final = 256
"""Maximum number of objects without finalizers per step."""
# Marking an object with finalizers takes the time of this many removals, and one more per these bytes.
_MARKED: Final = 16
_BYTES: Final = 250


@final
class InstanceDeletion:
    def __init__(self) -> None:
        self._starts: dict[str, str] = {}  # by UID of the CRD, while objects are left

    def __call__(self, state: ServerState, *, moments: Moments) -> bool:
        """Delete the next objects of terminating CRDs, and return whether it wrote or more may be left."""
        before = state.store.revision
        terminating = [crd for crd in state.store.being_deleted(CRDS) if CLEANUP_FINALIZER in crd.finalizers]
        self._starts = {crd.uid: self._starts.get(crd.uid, "") for crd in terminating}
        room = MOST
        for crd in terminating:
            page = state.store.list(crd.name, limit=room, start=self._starts[crd.uid])
            self._starts[crd.uid] = page.next_start
            for item in page.items:
                if room <= 0:
                    self._starts[crd.uid] = item.key
                    break
                room -= _weight(item)
                if item.deletion_timestamp is None:
                    try:
                        state.delete_instance(crd.name, item, now=moments().now)
                    except (ApiError, QuestionError) as error:  # for example, it cannot be converted
                        state.crds.report_failure(crd.name, str(error), now=moments().now)
            if room <= 0:
                return True
        return state.store.revision != before


def _weight(item: Resource) -> int:
    if item.deletion_timestamp is not None or not item.finalizers:
        return 1
    return _MARKED + len(item.raw) // _BYTES
