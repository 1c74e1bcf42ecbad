"""Every harm once more by its name: over TLS, with the in-order queue, and with a look at what is left in memory.

In test_hostile_server.py the same are played over plain HTTP, with the default queue and more ways of each.
"""

from __future__ import annotations

import asyncio

import pytest
import trustme

from deltaloop.cache import QueueKind
from tests.client.authority import Authority
from tests.hostile.leaks import nothing_kept
from tests.hostile.scenarios import SCENARIOS
from tests.hostile.scene import Variant, played_as


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(trustme.CA())


@pytest.mark.parametrize("name", SCENARIOS)
async def test_over_tls(name: str, authority: Authority) -> None:
    asyncio.get_running_loop().set_debug(False)  # it takes half of the time, and all of this was played with it once
    with played_as(Variant(authority, QueueKind.REAL_FIFO)), nothing_kept():
        await SCENARIOS[name]()
