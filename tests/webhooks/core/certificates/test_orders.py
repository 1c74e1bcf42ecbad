"""Two replicas that race, in the orders of their requests: no handshake fails, and they agree on one authority.

Here the orders in which a replica goes on once before the other one has ended; ``make -C lab explore-certificates``
follows all of them, from every moment.
"""

from __future__ import annotations

import pytest

from tests.webhooks.core.certificates.orders import (
    Moment,
    first_start,
    follow,
    successor_is_to_serve,
)


@pytest.mark.parametrize("moment", [first_start, successor_is_to_serve], ids=lambda each: each.__name__)
def test_replicas_do_not_conflict_in_any_order(moment: Moment) -> None:
    states, conflicts = follow(moment, switches=1)
    assert states > 50
    assert conflicts == 1, "in some order a write comes too late, and is not made"


def test_server_without_conflict_checks_is_detected() -> None:
    with pytest.raises(AssertionError, match="2 new authorities"):
        follow(first_start, switches=1, last_write_wins=True)
