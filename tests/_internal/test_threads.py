"""Computing threads share the interpreter with the event loop."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from deltaloop._internal.threads import beside_loop, shared_interpreter


def test_shared_interpreter_shortens_switch_interval_and_pauses_collection() -> None:
    interval = sys.getswitchinterval()
    with shared_interpreter():
        with shared_interpreter():
            assert sys.getswitchinterval() < interval / 5
        assert not gc.isenabled()
        assert sys.getswitchinterval() < interval / 5
    assert gc.isenabled()
    assert sys.getswitchinterval() == interval


def test_new_objects_are_not_collected_after_block() -> None:
    with shared_interpreter():
        made = [[number] for number in range(100_000)]
    assert gc.get_count()[0] < gc.get_threshold()[0]
    assert gc.is_tracked(made)


def test_frozen_objects_stay_frozen() -> None:
    for _ in range(2):
        with shared_interpreter():
            pass
    assert gc.get_freeze_count(), "tests/conftest.py freezes what the run has imported"


def test_disabled_garbage_collection_stays_disabled() -> None:
    gc.disable()
    try:
        with shared_interpreter():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_process_restores_settings() -> None:
    interval = sys.getswitchinterval()
    with shared_interpreter():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() and sys.getswitchinterval() == interval else 1)
    assert os.waitpid(child, 0)[1] == 0


async def test_work_runs_in_thread_and_its_error_is_raised() -> None:
    assert await beside_loop(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        await beside_loop(lambda: 1 // 0)
    assert gc.isenabled()
