"""Actions on controllers: reconcile keys, retry or drop parked keys, pause and resume.

Each action is logged and recorded as an Event, because it changes the behavior of the program.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop.api.keys import split_meta_namespace_key
from deltaloop.api.references import Trigger
from deltaloop.runtime.program.pages import HttpPage
from deltaloop.runtime.reconcile.loop import ReconcileLoop

if TYPE_CHECKING:
    from deltaloop.events import ComponentRecorder

_logger: Final = logging.getLogger("deltaloop.runtime")
_KEYS_PER_TURN: Final = 250

ACTIONS: Final = {
    "reconcile": "ReconcileRequested",
    "reconcile-all": "ReconcileAllRequested",
    "retry": "ParkedKeyRetried",
    "drop": "ParkedKeyDropped",
    "pause": "ControllerPaused",
    "resume": "ControllerResumed",
}
"""Actions with the reasons of their Events."""
OF_KEYS: Final = frozenset({"reconcile", "retry", "drop"})


@final
class DoctorActions:
    """Actions of one manager. Use it on the event loop of the manager."""

    def __init__(
        self,
        loops: Sequence[ReconcileLoop],
        recorders: Mapping[str, ComponentRecorder],
        *,
        namespace: str,
        clock: Callable[[], float],
    ) -> None:
        self._loops = loops
        self._recorders = recorders
        self._namespace = namespace
        self._clock = clock

    async def answer(self, rest: str, query: Mapping[str, list[str]], user: str) -> HttpPage:
        """Respond to POST of ``/doctor/ACTION?controller=NAME&key=KEY`` with ``{"keys": NUMBER}``."""
        name, key = (query.get(field, [""])[0] for field in ("controller", "key"))
        loop = next((loop for loop in self._loops if loop.controller.name == name), None)
        if rest not in ACTIONS:
            return HttpPage(f"the action must be one of {', '.join(ACTIONS)}, got {rest!r}\n".encode(), status=400)
        if (rest in OF_KEYS) != bool(key):
            return HttpPage(f"{rest} needs {'a' if rest in OF_KEYS else 'no'} key\n".encode(), status=400)
        if loop is None:
            known = ", ".join(loop.controller.name for loop in self._loops)
            return HttpPage(f"the controller must be one of {known}, got {name!r}\n".encode(), status=404)
        done = await self._act(rest, loop, key)
        if done is None:
            return HttpPage(b"the controller has no such key\n", status=404)
        extra = {"action": rest, "controller": name, "key": key, "keys": done, "user": user}
        _logger.info("action of deltaloop doctor", extra=extra)
        self._record(rest, loop, key, user)
        return HttpPage(json.dumps({"keys": done}).encode(), "application/json")

    async def _act(self, action: str, loop: ReconcileLoop, key: str) -> int | None:
        """Perform an action and return the number of keys, or None if the key is unknown."""
        queue, cache = loop.queue, loop.own_cache
        trigger = Trigger(source="doctor", verb=action, at=self._clock())
        if action == "pause":
            loop.pause()
        elif action == "resume":
            loop.resume()
        elif action == "reconcile-all":
            keys = [] if cache is None else [obj.key for obj in cache.list()]
            for number, each in enumerate(keys, 1):
                queue.add(each, trigger=trigger)
                if number % _KEYS_PER_TURN == 0:
                    await asyncio.sleep(0)
            return len(keys)
        elif action == "retry":
            return 1 if queue.retry_dead_letter(key, trigger=trigger) else None
        elif action == "drop":
            return None if queue.discard_dead_letter(key) is None else 1
        elif (cache is not None and cache.find(key) is not None) or key in loop.failing():
            queue.add(key, trigger=trigger)
            return 1
        else:
            return None
        return 0

    def _record(self, action: str, loop: ReconcileLoop, key: str, user: str) -> None:
        """Record an Event about the object of the key, or about the Pod."""
        recorder = self._recorders.get(loop.controller.name)
        if recorder is None:
            return
        obj: Any = None if loop.own_cache is None or not key else loop.own_cache.find(key)
        if obj is None and key:
            place, kind = split_meta_namespace_key(key), str(loop.controller.resource)
            api_version, _, name = kind.rpartition("/")
            obj = {
                "apiVersion": api_version,
                "kind": name,
                "metadata": {"namespace": place.namespace, "name": place.name},
            }
        elif obj is None:
            metadata = {"namespace": self._namespace, "name": socket.gethostname()}
            obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        message = f"{user} requested {action} of {loop.controller.name}{f' {key}' if key else ''}"
        recorder.event(obj, "Normal", ACTIONS[action], message)
