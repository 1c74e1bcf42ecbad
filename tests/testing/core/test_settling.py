"""What is left to do, and when a wait for it takes too long."""

from __future__ import annotations

import pytest

from deltaloop.testing.programs.core.settling import QueueState, ReplicaState, Settling, left_to_do


def replica(
    name: str = "a", *, starting: bool = False, stands_by: bool = False, disconnected: bool = False, **queue: object
) -> ReplicaState:
    queues = (QueueState(controller="c", **queue),) if queue else ()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return ReplicaState(name=name, starting=starting, stands_by=stands_by, disconnected=disconnected, queues=queues)


@pytest.mark.parametrize(
    ("replicas", "left"),
    [
        ([], ()),
        ([replica()], ()),
        ([replica(runs=7)], ()),
        ([replica(waiting=1)], ("a: c has 1 key in its queue",)),
        ([replica(waiting=2)], ("a: c has 2 keys in its queue",)),
        ([replica(running=("x/y",))], ("a: c reconciles x/y",)),
        ([replica(failing=(("x/y", 0.3, ""),))], ("a: c retries x/y in 0.3 s after a failure",)),
        ([replica(failing=(("x/y", 2, "KeyError"),))], ("a: c retries x/y in 2 s after KeyError (see the log)",)),
        ([replica(starting=True)], ("a starts",)),
        ([replica(), replica("b", starting=True)], ("b starts",)),
        ([replica(stands_by=True)], ("no program is working: a is a standby",)),
        ([replica(stands_by=True, waiting=3), replica("b")], ()),
        ([replica(disconnected=True, waiting=3), replica("b")], ()),
        (
            [replica(disconnected=True), replica("b", stands_by=True)],
            ("no program is working: a is disconnected from the server, b is a standby",),
        ),
    ],
)
def test_pending_work_is_listed(replicas: list[ReplicaState], left: tuple[str, ...]) -> None:
    assert left_to_do(replicas) == left


def test_settling_fails_after_timeout() -> None:
    settling = Settling(now=10.0, timeout=5.0)
    assert not settling.look([], ("x",), now=14.9)
    assert settling.look([], ("x",), now=15.0)
    assert settling.report([]) == "not settled within 5 s; pending:\n  x"


def test_key_that_reruns_without_passing_time_is_hot() -> None:
    settling = Settling(now=0.0, timeout=5.0)
    looks = 0
    while not settling.look([replica(running=("x/y",), runs=looks * 30)], ("x",), now=0.0):
        looks += 1
        assert looks < 30
    report = settling.report(["patch a", "patch a", "patch b"])
    assert f"during the wait, a: c reconciled {looks * 30} times, most often for x/y" in report
    assert "during the wait, 2 times: patch a" in report
    assert "patch b" not in report


@pytest.mark.parametrize("hot", ["another key each time", "one long run", "time passes"])
def test_many_different_reconciles_are_not_hot(hot: str) -> None:
    settling = Settling(now=0.0, timeout=500.0)
    for look in range(400):
        key = f"x/{look}" if hot == "another key each time" else "x/y"
        runs = 1 if hot == "one long run" else look
        now = float(look) if hot == "time passes" else 0.0
        assert not settling.look([replica(running=(key,), runs=runs)], ("x",), now=now)


def test_settling_fails_if_time_does_not_pass() -> None:
    settling = Settling(now=0.0, timeout=5.0)
    assert any(settling.look([], ("x",), now=0.0) for _ in range(1000))


def test_long_list_is_truncated() -> None:
    settling = Settling(now=0.0, timeout=0.0)
    settling.look([], tuple(f"key {number}" for number in range(25)), now=0.0)
    assert settling.report([]).splitlines()[-1] == "  and 15 more"
