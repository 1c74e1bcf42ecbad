"""Embedded servers that begin with the objects of one before them: to make these takes longer than most tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.apiserver.core.storage.store import StoreState


def api_server(options: ServerOptions) -> ApiServer:
    """Make a server; its first objects have the ids and times of others in this process."""
    if options.data_dir is not None:
        return ApiServer(options)
    return ApiServer(options, begins_with=_first_objects(options.authorization_mode, options.wall_clock))


@lru_cache(maxsize=8)
def _first_objects(mode: str, wall_clock: Callable[[], datetime]) -> StoreState:
    insecure = mode != "RBAC"  # which needs users
    options = ServerOptions(insecure_http=insecure, authorization_mode=mode, wall_clock=wall_clock)
    return ApiServer(options).first_objects()
