"""Keys that a member of a sharded program accepts."""

from __future__ import annotations

from deltaloop.runtime.reconcile.own_keys import OwnKeys
from deltaloop.sharding.core.shard_map import ShardRange
from deltaloop.sharding.share import Share
from deltaloop.workqueue import WorkQueue

ALL = ShardRange(0, 2**64)


async def test_a_key_waits_until_the_member_owns_it() -> None:
    queue, share = WorkQueue[str](), Share("namespace", member="a", settling=1.0, clock=lambda: 0.0)
    share.is_valid = lambda: True
    keys, others = OwnKeys(queue, share, keeps_others=True), OwnKeys(queue, share)
    keys.add("default/a")
    others.add("default/b")
    assert len(queue) == 0
    share.change([ALL], ())
    keys.take_up()
    others.take_up()
    assert len(queue) == 1
    assert await queue.get() == "default/a"


def test_a_key_is_queued_if_the_member_receives_its_range_in_the_meantime() -> None:
    queue, share = WorkQueue[str](), Share("namespace", member="a", settling=1.0, clock=lambda: 0.0)
    asked: list[None] = []

    def is_valid() -> bool:
        asked.append(None)
        return len(asked) > 1  # the range arrives after the first question

    share.change([ALL], ())
    share.is_valid = is_valid
    OwnKeys(queue, share, keeps_others=True).add("default/a")
    assert len(queue) == 1
