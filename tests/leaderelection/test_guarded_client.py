"""Every write verb asks the guard, every read verb passes, and all arguments arrive."""

from __future__ import annotations

from typing import Any, cast

import pytest

from deltaloop.leaderelection import GuardedClient, LeadershipGuard, LeadershipLostError, WorkClient


class Recording:
    """Answers every verb with its name and arguments."""

    namespace = "default"

    def __getattr__(self, verb: str) -> Any:
        async def call(*arguments: object, **options: object) -> object:
            return (verb, arguments, {name: value for name, value in options.items() if value is not None})

        return call


def make(*, leading: bool) -> GuardedClient:
    guard = LeadershipGuard(
        lambda: 10.0, lambda: 5.0 if leading else 10.0, lock="default/x", identity="a", fencing_token="7"
    )
    return GuardedClient(cast("WorkClient", Recording()), guard)


WRITES: dict[str, tuple[Any, ...]] = {
    "create": ("v1/Pod", {}),
    "update": ("v1/Pod", {}),
    "update_status": ("v1/Pod", {}),
    "patch": ("v1/Pod", "x", {}),
    "delete": ("v1/Pod", "x"),
}
READS: dict[str, tuple[Any, ...]] = {
    "get": ("v1/Pod", "x"),
    "list": ("v1/Pod",),
    "list_all": ("v1/Pod",),
    "resource": ("deploy",),
}


@pytest.mark.parametrize("verb", WRITES)
async def test_writes_pass_while_leading_and_are_refused_after(verb: str) -> None:
    answer = await getattr(make(leading=True), verb)(*WRITES[verb], timeout=3)
    assert answer == (verb, WRITES[verb], {"timeout": 3})
    with pytest.raises(LeadershipLostError, match=f"{verb} refused: a does not lead default/x") as caught:
        await getattr(make(leading=False), verb)(*WRITES[verb])
    assert caught.value.fencing_token == "7"


@pytest.mark.parametrize("verb", READS)
async def test_reads_always_pass(verb: str) -> None:
    answer = await getattr(make(leading=False), verb)(*READS[verb])
    assert answer[:2] == (verb, READS[verb])


def test_a_closed_guard_stays_closed() -> None:
    guard = LeadershipGuard(lambda: 10.0, lambda: 5.0, lock="default/x", identity="a", fencing_token="7")
    assert guard.is_open
    guard.close()
    assert not guard.is_open
    assert make(leading=True).namespace == "default"
