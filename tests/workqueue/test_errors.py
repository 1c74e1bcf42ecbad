"""The room's errors have the one root, and survive pickling."""

from __future__ import annotations

import pickle

import deltaloop
from deltaloop.errors import QueueShutDownError, TerminalError


def test_errors_derive_from_root_and_can_be_pickled() -> None:
    shut_down = pickle.loads(pickle.dumps(QueueShutDownError("pods")))
    assert isinstance(shut_down, QueueShutDownError)
    assert issubclass(QueueShutDownError, deltaloop.DeltaloopError)
    assert shut_down.queue == "pods"
    assert str(shut_down) == "the work queue 'pods' is shut down and empty"
    terminal = pickle.loads(pickle.dumps(TerminalError("bad spec")))
    assert isinstance(terminal, deltaloop.TerminalError)
    assert str(terminal) == "bad spec"
