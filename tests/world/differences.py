"""What is meant to differ between the two runs of ``make world``: ``docs/embedded-server.md`` gives the reasons.

A line that no difference of a whole run needs any more fails the run, so that it goes.
"""

from __future__ import annotations

from typing import Final

from tests.world.compare import KnownDifference

_NO_FINALIZERS = "not added: nothing here would take them away"

_NO_QUOTAS = "their objects are stored, and never asked"

# The controller manager adds them then, so it is their owner.
KNOWN: Final[tuple[KnownDifference, ...]] = (
    KnownDifference(
        "statefulset/*: persistentvolumes/*/managedFields/kube-controller-manager Update v1 -", _NO_FINALIZERS
    ),
    KnownDifference(
        "statefulset/*: persistentvolumeclaims/*/managedFields/kube-controller-manager Update v1 -", _NO_FINALIZERS
    ),
    KnownDifference("quota/a second Pod/*", _NO_QUOTAS),
)
