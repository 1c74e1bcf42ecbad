"""One watch stream and when it is given up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tools.diagrams.model import Diagram, Machine, Move, walked

from deltaloop.client.core.watch_limits import WatchLimitOptions, WatchLimits

OPTIONS = WatchLimitOptions()
TIMEOUT = 300


class _Stream:
    def __init__(self) -> None:
        self.now = 0.0
        self.over = ""
        self.limits = WatchLimits(OPTIONS, now=0.0, timeout_seconds=TIMEOUT)

    @property
    def give_up_at(self) -> float:
        at = self.limits.give_up_at()
        assert at is not None
        return at

    @property
    def idle_limited(self) -> bool:
        """Whether silence alone ends it: its end is not the deadline, or comes with the last byte."""
        return self.give_up_at == self.limits.last_byte_at + OPTIONS.idle_timeout

    def be_silent(self) -> None:
        self.now = self.give_up_at
        idle = self.limits.reason(self.now).startswith("nothing came")
        self.over = "given up: silent" if idle else "given up: past its deadline"

    def last_to_the_end(self) -> None:
        """Bring bytes again and again, until the server should have ended it."""
        while self.give_up_at < TIMEOUT + OPTIONS.deadline_slack:
            self.now = self.give_up_at - 1.0
            self.limits.saw_bytes(self.now)
        self.be_silent()


def _view(stream: _Stream) -> str:
    if stream.over:
        return stream.over
    return "open, with bookmarks" if stream.idle_limited else "open, without bookmarks"


def _identity(stream: _Stream) -> Hashable:
    return _view(stream)


def _moves(stream: _Stream) -> Iterable[Move[_Stream]]:
    if stream.over:
        return
    yield "data arrives", lambda stream: stream.limits.saw_bytes(stream.now)
    yield "a bookmark arrives", lambda stream: stream.limits.saw_bookmark()
    limit = stream.give_up_at - stream.now
    yield f"silence for {limit:.0f} s", lambda stream: stream.be_silent()
    late = OPTIONS.deadline_slack
    yield f"data arrives for {late:.0f} s longer than requested", lambda stream: stream.last_to_the_end()


def diagrams() -> list[Diagram]:
    """Walk one stream that was asked for 300 s."""
    machine = Machine(_Stream, _moves, view=_view, identity=_identity)
    title = "A watch stream of 300 s and its limits"
    return [walked("watch-limits", "reflector", title, "client/core/watch_limits.py", machine)]
