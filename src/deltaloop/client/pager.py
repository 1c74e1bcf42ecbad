"""Fetches all pages of a list. Core: ``core/pager.py``."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.list_options import ListOptions
from deltaloop.client.core.pager import Pager
from deltaloop.client.resource_list import ResourceList

_log = logging.getLogger("deltaloop.client")

T = TypeVar("T")


async def fetch_all(fetch: Callable[[ListOptions], Awaitable[ResourceList[T]]], pager: Pager[T]) -> ResourceList[T]:
    """Fetch page after page until the list is complete; cancelling drops what was fetched.

    Args:
        fetch: Asks for one page.
        pager: A fresh pager; afterwards it tells how many pages there were.

    Raises:
        DeltaloopError: Whatever ``fetch`` raises and the pager cannot mend.
    """
    while (options := pager.next_request) is not None:
        try:
            page = await fetch(options)
        except DeltaloopError as error:
            if not pager.failed(error):
                raise
            _log.info("a continue token expired; the whole list is asked for at once")
        else:
            pager.saw(page)
    return pager.result()
