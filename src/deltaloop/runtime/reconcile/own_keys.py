"""Queue of a member of a sharded program, which accepts only its own keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from deltaloop.runtime.enqueue import AcceptsKeys
    from deltaloop.sharding.share import Share

_MOST_ELSEWHERE: Final = 10_000


@final
class OwnKeys:
    """Queue that accepts only keys of the member."""

    def __init__(self, queue: AcceptsKeys, share: Share, *, keeps_others: bool = False) -> None:
        self._queue = queue
        self._share = share
        self._elsewhere: dict[str, object] | None = {} if keeps_others else None

    def add(self, item: str, *, trigger: object | None = None) -> None:
        """Queue a key if the member owns it."""
        if self._share.owns(item):
            self._queue.add(item, trigger=trigger)
        elif self._elsewhere is not None and len(self._elsewhere) < _MOST_ELSEWHERE:
            self._elsewhere[item] = trigger
            if self._share.owns(item):  # since the check above, which can run in another thread
                self.take_up()

    def take_up(self) -> None:
        """Queue waiting keys that the member owns now."""
        waiting = self._elsewhere or {}
        for key in [key for key in [*waiting] if self._share.owns(key)]:  # other threads add keys
            self._queue.add(key, trigger=waiting.pop(key, None))
