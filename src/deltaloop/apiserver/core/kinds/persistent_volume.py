"""PersistentVolume: a new one waits for what it is bound to.

Source: Kubernetes pkg/registry/core/persistentvolume/strategy.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.apiserver.core.strategy import Fields, Given, Stored, Strategy


def _finish_new(volume: Fields, _store: Stored, given: Given) -> tuple[()]:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": given.time}
    return ()


STRATEGY: Final = Strategy(finish_new=_finish_new)
