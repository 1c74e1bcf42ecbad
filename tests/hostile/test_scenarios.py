"""Every harm once more by its name: over TLS, with the in-order queue, and with a look at what is left in memory.

In test_hostile_server.py the same are played over plain HTTP, with the default queue and more ways of each.
"""

from __future__ import annotations

import pytest
import trustme

from deltaloop.cache import QueueKind
from tests.client.authority import Authority
from tests.hostile.leaks import nothing_kept
from tests.hostile.scenarios import SCENARIOS
from tests.hostile.scene import Variant, played_as
from tests.nightly import by_day


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(trustme.CA())


@pytest.mark.parametrize("name", by_day(SCENARIOS, ["cut mid-object"]))
async def test_hostile_scenarios_over_tls(name: str, authority: Authority) -> None:
    with played_as(Variant(authority, QueueKind.REAL_FIFO)), nothing_kept():
        await SCENARIOS[name]()
