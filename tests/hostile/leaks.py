"""What is still held when a scene is over: memory that this library allocated and that somebody keeps."""

from __future__ import annotations

import gc
import inspect
import logging
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager

from deltaloop.api.managed_fields import decode_stripped
from deltaloop.api.resource import Resource, _viewed, make_resource
from deltaloop.client.verbs.watch import WatchStream

_MAKERS = (Resource.from_json, Resource.from_dict, make_resource, decode_stripped, WatchStream.received)
_CACHE = 4_000  # interned texts and the like; an informer that is kept is much more
_ALL = 64_000  # and tables of TLS, pools and settings that live as long as the process


@contextmanager
def nothing_kept() -> Generator[None, None, None]:
    """Check that no object made within is left, no informer or part of one, and next to nothing else of ours."""
    gc.collect()
    logging.disable()  # pytest keeps what is logged, and with it what the records name
    tracemalloc.start()
    try:
        yield
        _viewed.clear()  # the last few decoded objects are kept on purpose, whatever comes of them
        gc.collect()
        kept = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)
    left = [each for maker in _MAKERS for each in _allocated_in(kept, maker)]
    assert left == [], f"objects are left: {[str(each) for each in left]}"
    for name, most in (("*/deltaloop/cache/*", _CACHE), ("*/deltaloop/*", _ALL)):
        found = kept.filter_traces([tracemalloc.Filter(True, name)]).statistics("lineno")
        assert sum(each.size for each in found) < most, f"memory is left: {[str(each) for each in found[:8]]}"


def _allocated_in(kept: tracemalloc.Snapshot, function: object) -> list[tracemalloc.Statistic]:
    lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
    only = tracemalloc.Filter(True, inspect.getsourcefile(function) or "")  # type: ignore[arg-type]
    found = kept.filter_traces([only]).statistics("lineno")
    return [each for each in found if first <= each.traceback[0].lineno < first + len(lines)]
