"""Two replicas that race, in the orders of their requests: no handshake fails, and they agree on one authority.

Here the orders in which a replica goes on once before the other one has ended; ``make explore-certificates`` follows
all of them, from every moment.
"""

from __future__ import annotations

import pytest

from tests.webhooks.core.certificates.orders import (
    Moment,
    brought_by_a_user,
    deleted,
    first_start,
    follow,
    successor_is_to_serve,
)
from tests.webhooks.core.certificates.test_rotation import seeded


@pytest.mark.parametrize("moment", [first_start, successor_is_to_serve], ids=lambda each: each.__name__)
def test_in_no_order_do_they_get_in_each_others_way(moment: Moment) -> None:
    states, conflicts = follow(moment, switches=1)
    assert states > 50
    assert conflicts == 1, "in some order a write comes too late, and is not made"


def test_a_server_that_takes_every_write_is_found() -> None:
    with pytest.raises(AssertionError, match="2 new authorities"):
        follow(first_start, switches=1, last_write_wins=True)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("bug", "moment"),
    [
        ("strangers are taken out of caBundle", brought_by_a_user),
        ("what is new is served at once", deleted),
    ],
)
def test_a_seeded_bug_is_found(bug: str, moment: Moment) -> None:
    with pytest.raises(AssertionError):
        follow(moment, seeded(bug), switches=1)
