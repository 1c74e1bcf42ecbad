"""What the real server leaves to the controller manager, run beside the embedded one on request."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Protocol

from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.write_context import Moments
from deltaloop.apiserver.core.writes.server_state import ServerState


class RunController(Protocol):
    """A controller of the server: works until the server stops."""

    def __call__(self, state: ServerState, signal: ChangeSignal, *, moments: Moments) -> Coroutine[None, None, None]:
        """Run it."""
