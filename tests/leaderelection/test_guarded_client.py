"""Every write verb asks the guard, every read verb passes, and all arguments arrive."""

from __future__ import annotations

from typing import Any, cast

import pytest

from deltaloop.client import Client
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
    "apply": ("v1/Pod", {}),
    "scale": ("v1/Pod", "x", 3),
    "delete_collection": ("v1/Pod",),
    "create_subresource": ("v1/Pod", "x", "binding", {}),
}
READS: dict[str, tuple[Any, ...]] = {
    "get": ("v1/Pod", "x"),
    "list": ("v1/Pod",),
    "list_all": ("v1/Pod",),
    "resource": ("deploy",),
    "resources": (),
    "get_scale": ("v1/Pod", "x"),
    "wait_for": ("v1/Pod", "x", "ready"),
}
OTHER_READS = {"watch", "each_list_item", "logs"}  # they are no coroutines
OTHER_WRITES = {"evict"}  # it returns nothing
NO_VERBS = {"close", "config", "namespace", "options"}


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


def test_every_verb_of_the_client_is_here_and_sorted() -> None:
    of_client = {name for name in dir(Client) if not name.startswith(("_", "with_"))} - NO_VERBS
    assert of_client == {*WRITES, *OTHER_WRITES, *READS, *OTHER_READS}, "a new verb: does it write?"
    of_guarded = {name for name in dir(GuardedClient) if not name.startswith("_")}
    assert of_guarded == of_client | {"namespace"}


@pytest.mark.parametrize("verb", sorted({*WRITES, *OTHER_WRITES}))
async def test_nothing_is_sent_after_the_term(verb: str) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} reached the client")

    guard = LeadershipGuard(lambda: 10.0, lambda: 10.0, lock="default/x", identity="a", fencing_token="7")
    with pytest.raises(LeadershipLostError):
        await getattr(GuardedClient(cast("WorkClient", Untouchable()), guard), verb)(*WRITES.get(verb, ("x",)))


@pytest.mark.parametrize(
    ("verb", "arguments"), [("watch", ("v1/Pod",)), ("each_list_item", ("v1/Pod",)), ("logs", ("x",))]
)
async def test_reads_that_are_no_coroutines_pass(verb: str, arguments: tuple[Any, ...]) -> None:
    answer = await getattr(make(leading=False), verb)(*arguments, timeout=3)
    assert answer == (verb, arguments, {"timeout": 3})


def test_the_client_fits() -> None:
    fits: type[WorkClient] = Client
    assert fits is Client


def test_a_closed_guard_stays_closed() -> None:
    guard = LeadershipGuard(lambda: 10.0, lambda: 5.0, lock="default/x", identity="a", fencing_token="7")
    assert guard.is_open
    guard.close()
    assert not guard.is_open
    assert make(leading=True).namespace == "default"
