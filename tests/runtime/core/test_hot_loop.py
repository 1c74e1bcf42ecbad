"""Keys that keep themselves busy: by examples, against a naive model, and with seeded bugs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import Phase, given, settings

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import Trigger, reference_to
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.runtime.core.hot_loop import Cooled, Fact, HotLoop, HotLoopOptions, HotLoops, _other, _owns_any
from deltaloop.runtime.core.own_writes import OwnWrite, changed_paths, path_text, show_changes
from tests.having import having

OPTIONS = HotLoopOptions(threshold=4, window=60.0, min_interval=1.0, max_interval=8.0, reset_after=20.0, limit=5)


def deployment(version: int, *, manager: str = "", **spec: Any) -> Resource:
    fields = [{"manager": manager, "time": f"2026-01-01T00:00:{version:02}Z"}] if manager else []
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    return Resource.from_dict({"metadata": {**metadata, "managedFields": fields}, "spec": spec}, kinds.DEPLOYMENT)


def wrote(
    before: Resource | None, after: Resource, *, verb: str = "update", kind: ResourceType[Any] = kinds.DEPLOYMENT
) -> OwnWrite:
    return OwnWrite(
        verb=verb,
        kind=str(kind),
        key=after.key,
        uid=after.uid,
        version=after.resource_version,
        before=before,
        after=after,
    )


def echo(of: Resource, origin: str = "self, reconcile 1") -> Trigger:
    return Trigger(source="owner", verb="update", reference=reference_to(of, kinds.DEPLOYMENT), origin=origin)


def drive_self_loop(loops: HotLoops, *, times: int, at: float = 0.0, step: float = 0.1) -> list[Fact]:
    facts: list[Fact] = []
    for turn in range(times):
        before, after = deployment(turn + 1, replicas=turn), deployment(turn + 2, replicas=turn + 1)
        facts += loops.observe(
            "default/a", triggers=[echo(before)], writes=[wrote(before, after)], succeeded=True, now=at + turn * step
        )
    return facts


def drive_fight(loops: HotLoops, *, times: int, origin: str = "", step: float = 1.0) -> list[Fact]:
    """Set replicas to 3 again and again, while somebody else sets them to 5."""
    facts: list[Fact] = []
    version = 1
    for turn in range(times):
        theirs = deployment(version, manager="hpa", replicas=5, paused=turn)
        ours = deployment(version + 1, manager="deltaloop", replicas=3, paused=turn)
        version += 2
        facts += loops.observe(
            "default/a",
            triggers=[echo(theirs, origin)],
            writes=[wrote(theirs, ours)],
            succeeded=True,
            now=turn * step,
        )
        facts += loops.observe(  # the echo of the own write asks for nothing
            "default/a", triggers=[echo(ours)], writes=[], succeeded=True, now=turn * step + step / 2
        )
    return facts


def test_self_triggering_key_is_reported_once_with_changed_fields() -> None:
    loops = HotLoops(OPTIONS)
    [found] = drive_self_loop(loops, times=10, step=0.125)
    assert found == HotLoop(
        key="default/a",
        cause="self",
        kind="apps/v1/Deployment",
        object_key="default/web",
        changes=("spec.replicas: 3 -> 4",),
        other="",
        strikes=4,
        seconds=0.375,
        interval=1.0,
    )
    assert loops.is_hot("default/a")


def test_delay_of_hot_key_doubles_up_to_maximum_and_other_keys_have_none() -> None:
    loops = HotLoops(OPTIONS)
    drive_self_loop(loops, times=4)
    assert loops.delay("default/a", 0.3) == pytest.approx(1.0)
    assert loops.delay("default/b", 0.3) == 0.0
    waits: list[float] = []
    now = 1.3
    for turn in range(6):
        before, after = deployment(50 + turn, replicas=turn), deployment(51 + turn, replicas=turn + 1)
        loops.observe("default/a", triggers=[echo(before)], writes=[wrote(before, after)], succeeded=True, now=now)
        waits.append(loops.delay("default/a", now))
        now += waits[-1]
    assert waits == pytest.approx([2.0, 4.0, 8.0, 8.0, 8.0, 8.0])
    assert loops.delay("default/a", now) == 0.0


def test_echo_without_write_ends_hot_loop_and_next_loop_is_reported() -> None:
    loops = HotLoops(OPTIONS)
    drive_self_loop(loops, times=4, step=0.125)
    failed = loops.observe("default/a", triggers=[echo(deployment(9))], writes=[], succeeded=False, now=1.0)
    assert failed == ()  # a failure proves nothing
    cooled = loops.observe("default/a", triggers=[echo(deployment(9))], writes=[], succeeded=True, now=2.0)
    assert cooled == (Cooled(key="default/a", cause="self", seconds=1.625),)
    assert loops.delay("default/a", 2.0) == 0.0
    assert len(drive_self_loop(loops, times=10, at=3.0)) == 1


def test_fight_over_field_is_reported_with_name_of_other_writer() -> None:
    loops = HotLoops(OPTIONS)
    [found] = drive_fight(loops, times=8)
    assert isinstance(found, HotLoop)
    assert (found.cause, found.other, found.strikes) == ("fight", "hpa", 4)
    assert found.changes == ("spec.replicas: 5 -> 3",)
    [found] = drive_fight(HotLoops(OPTIONS), times=8, origin="scaler, reconcile 7")
    assert isinstance(found, HotLoop)
    assert (found.cause, found.other) == ("fight", "scaler")


def owns(manager: str, second: int, *fields: str) -> dict[str, Any]:
    spec: dict[str, Any] = {f"f:{field}": {} for field in fields}
    return {"manager": manager, "time": f"2026-01-01T00:00:{second:02}Z", "fieldsV1": {"f:spec": spec}}


@pytest.mark.parametrize(
    ("left", "named"),
    [(("paused",), "hpa"), ((), "")],  # what was taken over as a whole has no entry any more
    ids=["the other one keeps a field", "it has none left"],
)
def test_other_writer_is_found_in_responses_without_cached_managed_fields(left: tuple[str, ...], named: str) -> None:
    loops = HotLoops(OPTIONS)
    facts: list[Fact] = []
    for turn in range(8):
        second = 2 * turn
        theirs = deployment(second + 1, replicas=5, paused=turn)
        entries = [owns("old", 0, "template"), owns("deltaloop", second + 1, "replicas")]
        entries += [owns("hpa", second, *left)] if left else []
        metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": str(second + 2)}
        ours = Resource.from_dict(
            {"metadata": {**metadata, "managedFields": entries}, "spec": {"replicas": 3, "paused": turn}},
            kinds.DEPLOYMENT,
        )
        facts += loops.observe(
            "default/a", triggers=[echo(theirs, "")], writes=[wrote(theirs, ours)], succeeded=True, now=float(turn)
        )
    [found] = facts
    assert isinstance(found, HotLoop)
    assert (found.cause, found.other) == ("fight", named)


def fought_over(version: int, replicas: int, *owners: dict[str, Any]) -> Resource:
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    fields = {"metadata": {**metadata, "managedFields": list(owners)}, "spec": {"replicas": replicas}}
    return Resource.from_dict(fields, kinds.DEPLOYMENT)


def foreign(version: int) -> Trigger:
    return Trigger(
        source="owner",
        verb="update",
        reference=reference_to(fought_over(version, 5), kinds.DEPLOYMENT),
        new_resource_version=str(version),
    )


def drive_fight_with_looks(
    loops: HotLoops, *, seen: Sequence[dict[str, Any]] | None, turns: int = 8
) -> tuple[list[Fact], list[int]]:
    """Fight without ``managedFields`` in the cache; return what is told, and the turns in which the server is asked."""
    facts: list[Fact] = []
    looks: list[int] = []

    def begins(turn: int, trigger: Trigger) -> None:
        subject = loops.wants_to_see("default/a", triggers=[trigger])
        if subject is not None:
            looks.append(turn)
            if seen is not None:
                loops.saw("default/a", subject, fought_over(2 * turn + 1, 5, *seen))

    for turn in range(turns):
        theirs = fought_over(2 * turn + 1, 5)
        ours = fought_over(2 * turn + 2, 3, owns("deltaloop", 2 * turn + 1, "replicas"))
        for trigger, writes in ((foreign(2 * turn + 1), [wrote(theirs, ours)]), (echo(ours), list[OwnWrite]())):
            begins(turn, trigger)
            facts += loops.observe(
                "default/a", triggers=[trigger], writes=writes, succeeded=True, now=turn + len(writes) / 2
            )
    return facts, looks


@pytest.mark.parametrize(
    ("seen", "named"),
    [
        ([owns("old", 59, "template"), owns("hpa", 7, "replicas")], "hpa"),  # who has the field, not who wrote last
        ([owns("hpa", 7, "paused"), owns("deltaloop", 9, "template")], "hpa"),  # it took the field away
        ([], ""),
        (None, ""),  # the server did not answer
    ],
    ids=["it has the field", "it took the field away", "nothing is known", "no answer"],
)
def test_object_is_read_once_before_fight_is_reported_to_find_other_writer(
    seen: list[dict[str, Any]] | None, named: str
) -> None:
    facts, looks = drive_fight_with_looks(HotLoops(OPTIONS), seen=seen)
    [found] = facts
    assert isinstance(found, HotLoop)
    assert (found.cause, found.other, found.strikes) == ("fight", named, 4)
    assert looks == [4]  # the fourth strike's reconcile, by the other one's write and not by the echo of ours


def test_object_is_not_read_if_cache_names_writer_or_no_fight() -> None:
    loops = HotLoops(OPTIONS)
    version = 1
    for turn in range(8):
        theirs = deployment(version, manager="hpa", replicas=5, paused=turn)
        ours = deployment(version + 1, manager="deltaloop", replicas=3, paused=turn)
        assert loops.wants_to_see("default/a", triggers=[foreign(version)]) is None
        loops.observe("default/a", triggers=[], writes=[wrote(theirs, ours)], succeeded=True, now=float(turn))
        version += 2
    for times in range(6):
        loops = HotLoops(OPTIONS)
        drive_self_loop(loops, times=times)
        assert loops.wants_to_see("default/a", triggers=[foreign(99)]) is None
    assert loops.wants_to_see("default/b", triggers=[foreign(99)]) is None


def test_response_with_other_uid_does_not_name_writer() -> None:
    class AnswersAnother(HotLoops):  # type: ignore[misc]  # of a final class
        def saw(self, key: str, subject: tuple[str, str], obj: Resource) -> None:
            fields = obj.to_dict()
            fields["metadata"]["uid"] = "its successor"
            super().saw(key, subject, Resource.from_dict(fields, kinds.DEPLOYMENT))

    [found] = drive_fight_with_looks(AnswersAnother(OPTIONS), seen=[owns("hpa", 7, "replicas")])[0]
    assert isinstance(found, HotLoop)
    assert found.other == ""


def test_fight_ends_after_quiet_period_not_after_own_echo() -> None:
    loops = HotLoops(OPTIONS)
    drive_fight(loops, times=6)
    assert loops.is_hot("default/a")
    assert loops.observe("default/a", triggers=[], writes=[], succeeded=True, now=24.9) == ()
    [cooled] = loops.observe("default/a", triggers=[], writes=[], succeeded=True, now=25.0)
    assert isinstance(cooled, Cooled)
    assert not loops.is_hot("default/a")


def test_foreign_triggers_and_rare_runs_are_not_hot() -> None:
    loops = HotLoops(OPTIONS)
    status = deployment(1, ready=0)
    for turn in range(100):
        now = turn * 0.1
        # A status that follows what others do: foreign triggers, and nobody else writes the field.
        after = deployment(turn + 2, ready=turn + 1)
        triggers = [echo(status), Trigger(source="informer", verb="update")]
        assert loops.observe("follows", triggers=triggers, writes=[wrote(status, after)], succeeded=True, now=now) == ()
        status = after
        # A poll, by requeue_after: nobody's write asked for it.
        poll = Trigger(source="requeue", verb="after")
        after = deployment(turn + 2, polled=turn)
        assert loops.observe("polls", triggers=[poll], writes=[wrote(None, after)], succeeded=True, now=now) == ()
        # An update that changed nothing has the version that was there.
        same = deployment(7, replicas=1)
        facts = loops.observe("idle", triggers=[echo(same)], writes=[wrote(same, same)], succeeded=True, now=now)
        assert facts == ()
        # Somebody else writes the object, but another field.
        before = deployment(2 * turn + 1, seen=turn, theirs=turn + 1)
        after = deployment(2 * turn + 2, seen=turn + 1, theirs=turn + 1)
        foreign = [echo(before, "")]
        assert loops.observe("beside", triggers=foreign, writes=[wrote(before, after)], succeeded=True, now=now) == ()
    assert drive_self_loop(HotLoops(OPTIONS), times=50, step=30.0) == []  # too seldom to matter


def test_objects_with_generated_names_share_higher_threshold() -> None:
    loops = HotLoops(OPTIONS)
    told: list[int] = []
    for turn in range(30):
        metadata = {"name": f"job-{turn}", "generateName": "job-", "namespace": "default", "uid": f"u{turn}"}
        made = Resource.from_dict({"metadata": {**metadata, "resourceVersion": str(turn)}}, kinds.DEPLOYMENT)
        write = wrote(None, made, verb="create")
        if loops.observe("default/a", triggers=[echo(made)], writes=[write], succeeded=True, now=turn * 0.1):
            told.append(turn)
    assert told == [19]  # 5 * 4 strikes


def test_key_of_another_owner_is_forgotten() -> None:
    loops = HotLoops(OPTIONS)
    drive_fight(loops, times=20)
    assert len(loops.hot_keys(20.0)) == len(loops.watched) == 1
    loops.forget(lambda _: False)
    assert len(loops) == 1
    loops.forget(lambda _: True)
    assert len(loops) + len(loops.watched) + len(loops.hot_keys(20.0)) == 0


def test_number_of_observed_keys_is_bounded() -> None:
    loops = HotLoops(OPTIONS)
    for number in range(50):
        after = deployment(2)
        loops.observe(f"default/{number}", triggers=[], writes=[wrote(deployment(1), after)], succeeded=True, now=0.0)
    assert len(loops) == 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": 1},
        {"limit": 0},
        {"min_interval": 9.0, "max_interval": 8.0},
        {"reset_after": 30.0, "max_interval": 30.0},
    ],
)
def test_invalid_hot_loop_options_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError):
        HotLoopOptions(**wrong)


def test_changes_have_paths_and_redacted_values() -> None:
    before = Resource.from_dict(
        {
            "metadata": {"name": "a", "labels": {"app.x/y": "1"}},
            "env": [{"name": "DB_PASSWORD", "value": "old"}],
            "n": 1,
        },
        kinds.CONFIG_MAP,
    )
    after = Resource.from_dict(
        {"metadata": {"name": "a", "labels": {"app.x/y": "2"}}, "env": [{"name": "DB_PASSWORD", "value": "planted"}]},
        kinds.CONFIG_MAP,
    )
    paths = changed_paths(before, after)
    assert [path_text(path) for path in paths] == ["metadata.labels['app.x/y']", "env[0].value", "n"]
    assert show_changes(before, after, paths) == (
        "metadata.labels['app.x/y']: 1 -> 2",
        "env[0].value: <redacted> -> <redacted>",
        "n: 1 -> nothing",
    )
    old, new = (Resource.from_dict({"metadata": {}, "data": {"a": value}}, kinds.SECRET) for value in ("b2xk", "bmV3"))
    assert show_changes(old, new, changed_paths(old, new)) == ("data.a",)
    assert changed_paths(before, after, limit=2) == paths[:2]


# -- against a model: the definition of a strike, counted over the whole past

Turn = tuple[float, str, str]
"""Seconds since the turn before; what asked for it: own, foreign; what it did: changes, contests, nothing."""

turns = st.lists(
    st.tuples(
        st.sampled_from([0.1, 1.0, 5.0, 25.0]),
        st.sampled_from(["own", "foreign"]),
        st.sampled_from(["changes", "contests", "nothing"]),
    ),
    max_size=40,
)


def model(past: list[Turn]) -> tuple[list[str], list[float]]:
    """Return what is told, and the delay after each turn."""
    told: list[str] = []
    delays: list[float] = []
    strikes: list[float] = []
    hot = ""
    struck_at = interval = now = 0.0
    has_written = False
    for pause, asked, did in past:
        now += pause
        if hot and ((hot == "self" and asked == "own" and did == "nothing") or now - struck_at >= OPTIONS.reset_after):
            told.append("cooled")
            hot, strikes, has_written = "", [], False
        cause = ""
        if did == "contests" and has_written:
            cause = "fight"
        elif did != "nothing" and asked == "own":
            cause = "self"
        has_written = has_written or did != "nothing"
        if cause:
            strikes.append(now)
            if hot:
                interval, struck_at = min(2 * interval, OPTIONS.max_interval), now
            elif sum(now - at <= OPTIONS.window for at in strikes) >= OPTIONS.threshold:
                hot, struck_at, interval = cause, now, OPTIONS.min_interval
                told.append(cause)
        delays.append(interval if hot else 0.0)
    return told, delays


def actual(past: list[Turn], loops: HotLoops) -> tuple[list[str], list[float]]:
    told: list[str] = []
    delays: list[float] = []
    now, version, value = 0.0, 1, 0
    present = deployment(version, replicas=value)
    for pause, asked, did in past:
        now += pause
        before, writes = present, list[OwnWrite]()
        if did == "contests":  # somebody else was here first
            version += 1
            value += 1
            before = present = deployment(version, replicas=value)
        if did != "nothing":
            version += 1
            value += 1
            present = deployment(version, replicas=value)
            writes = [wrote(before, present)]
        triggers = [echo(before, "self, reconcile 1" if asked == "own" else "")]
        facts = loops.observe("k", triggers=triggers, writes=writes, succeeded=True, now=now)
        told += ["cooled" if isinstance(fact, Cooled) else fact.cause for fact in facts]
        delays.append(loops.delay("k", now))
    return told, delays


def check(kind: type[HotLoops], examples: int) -> None:
    @settings(
        max_examples=examples,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=[Phase.explicit, Phase.generate],
    )
    @given(turns)
    def run(past: list[Turn]) -> None:
        told, delays = actual(past, kind(OPTIONS))
        expected_told, expected_delays = model(past)
        assert told == expected_told
        assert delays == pytest.approx(expected_delays)

    run()


def test_hot_loops_match_model_for_random_reconciles() -> None:
    check(HotLoops, 60)


def test_write_to_uncached_object_is_no_strike() -> None:
    loops = HotLoops(OPTIONS)
    for turn in range(3 * OPTIONS.threshold):
        written = wrote(None, deployment(1), verb="patch")  # whether it changed anything, nobody knows
        assert not loops.observe(
            "default/a", triggers=[echo(deployment(1))], writes=[written], succeeded=True, now=turn
        )
    assert wrote(None, deployment(1), verb="create").is_known_change
    assert wrote(deployment(1), deployment(2)).is_known_change
    assert not wrote(deployment(1), deployment(1)).is_known_change


def test_default_hot_loop_options() -> None:
    assert HotLoopOptions() == HotLoopOptions(
        threshold=20, window=60.0, min_interval=1.0, max_interval=30.0, reset_after=120.0, limit=1000
    )
    assert HotLoopOptions(threshold=2, limit=1).threshold == 2
    assert HotLoopOptions(min_interval=8.0, max_interval=8.0).min_interval == pytest.approx(8.0)


def test_strikes_before_cooling_down_do_not_count() -> None:
    loops = HotLoops(OPTIONS)
    drive_self_loop(loops, times=4)
    assert loops.observe("default/a", triggers=[echo(deployment(9))], writes=[], succeeded=True, now=1.0) != ()
    assert drive_self_loop(loops, times=3, at=2.0) == []
    assert len(drive_self_loop(loops, times=1, at=3.0)) == 1


@pytest.mark.parametrize("name", ["window", "min_interval", "max_interval", "reset_after"])
@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf")])
def test_invalid_hot_loop_durations_are_rejected(name: str, seconds: float) -> None:
    given: dict[str, Any] = {name: seconds}
    with pytest.raises(ValueError, check=having(argument=f"HotLoopOptions.{name}")):
        HotLoopOptions(**given)


def test_unknown_key_is_not_hot() -> None:
    loops = HotLoops(OPTIONS)
    assert not loops.is_hot("default/a")
    drive_self_loop(loops, times=3)
    assert not loops.is_hot("default/a")
    loops.saw("default/none", ("apps/v1/Deployment", "default/web"), deployment(1))
    loops.saw("default/a", ("apps/v1/Deployment", "default/none"), deployment(1))


def test_writes_without_triggers_are_no_loop() -> None:
    loops = HotLoops(OPTIONS)
    for turn in range(8):
        write = wrote(deployment(turn + 1, replicas=turn), deployment(turn + 2, replicas=turn + 1))
        assert loops.observe("default/a", triggers=[], writes=[write], succeeded=True, now=float(turn)) == ()


def made_beside(loops: HotLoops, number: int, *, key: str) -> None:
    metadata = {"name": f"other-{number}", "namespace": "default", "uid": f"u{number}", "resourceVersion": "1"}
    made = wrote(None, Resource.from_dict({"metadata": metadata}, kinds.DEPLOYMENT), verb="create")
    loops.observe(key, triggers=[], writes=[made], succeeded=True, now=0.5)


@pytest.mark.parametrize(("others", "told"), [(19, 1), (20, 0)])
def test_twenty_objects_per_key_are_observed(others: int, told: int) -> None:
    loops = HotLoops(OPTIONS)
    drive_self_loop(loops, times=3)
    for number in range(others):
        made_beside(loops, number, key="default/a")
    assert len(drive_self_loop(loops, times=1, at=1.0)) == told


def test_object_written_again_stays_observed() -> None:
    loops = HotLoops(OPTIONS)
    for turn in range(3):
        for number in range(12):
            made_beside(loops, 100 * turn + number, key="default/a")
        assert drive_self_loop(loops, times=1, at=float(turn)) == []
    assert len(drive_self_loop(loops, times=1, at=3.0)) == 1


def test_report_of_fight_contains_contested_fields_only() -> None:
    loops = HotLoops(OPTIONS)
    facts: list[Fact] = []
    for turn in range(8):
        theirs = deployment(2 * turn + 1, manager="hpa", replicas=5, beside=turn)
        ours = deployment(2 * turn + 2, manager="deltaloop", replicas=3, beside=turn + 1)
        facts += loops.observe(
            "default/a", triggers=[echo(theirs, "")], writes=[wrote(theirs, ours)], succeeded=True, now=float(turn)
        )
    assert isinstance(facts[0], HotLoop)
    assert facts[0].changes == ("spec.replicas: 5 -> 3",), "and not what nobody else writes"


@pytest.mark.parametrize(("others", "told"), [(4, 1), (5, 0)])
def test_most_recent_keys_are_observed(others: int, told: int) -> None:
    loops = HotLoops(OPTIONS)  # five of them
    drive_self_loop(loops, times=3)
    for number in range(others):
        made_beside(loops, number, key=f"default/other-{number}")
    assert len(loops) == 5
    assert len(drive_self_loop(loops, times=1, at=1.0)) == told


def test_object_is_read_only_after_foreign_write_to_it() -> None:
    loops = HotLoops(OPTIONS)
    assert drive_fight_with_looks(loops, seen=None, turns=4) == ([], [])
    elsewhere = Resource.from_dict({"metadata": {"name": "web", "namespace": "default", "uid": "x"}}, kinds.DEPLOYMENT)
    of_another = Trigger(
        source="owner", verb="update", reference=reference_to(elsewhere, kinds.DEPLOYMENT), new_resource_version="99"
    )
    by_one_of_us = Trigger(
        source="owner",
        verb="update",
        reference=reference_to(fought_over(99, 5), kinds.DEPLOYMENT),
        new_resource_version="99",
        origin="scaler, reconcile 7",
    )
    for trigger in (of_another, by_one_of_us, Trigger(source="timer", verb="tick", new_resource_version="99")):
        assert loops.wants_to_see("default/a", triggers=[trigger]) is None
    assert loops.wants_to_see("default/a", triggers=[of_another, foreign(99)]) == ("apps/v1/Deployment", "default/web")


def test_strike_counts_until_end_of_window() -> None:
    options = HotLoopOptions(threshold=2, window=10.0, reset_after=60.0)
    assert len(drive_self_loop(HotLoops(options), times=2, step=10.0)) == 1
    assert drive_self_loop(HotLoops(options), times=2, step=10.5) == []


def test_reconcile_with_many_writes_doubles_delay_once() -> None:
    loops = HotLoops(OPTIONS)
    drive_self_loop(loops, times=4)
    assert loops.delay("default/a", 0.3) == pytest.approx(1.0)
    writes = [wrote(deployment(turn, replicas=turn), deployment(turn + 1, replicas=turn + 1)) for turn in (5, 6, 7)]
    loops.observe("default/a", triggers=[echo(deployment(5))], writes=writes, succeeded=True, now=2.0)
    assert loops.delay("default/a", 2.0) == pytest.approx(2.0)


def test_recreated_object_is_compared_with_previous_creation() -> None:
    loops = HotLoops(OPTIONS)
    facts: list[Fact] = []
    for turn in range(4):
        made = wrote(None, deployment(turn + 1, replicas=turn), verb="create")
        facts += loops.observe(
            "default/a", triggers=[echo(deployment(turn))], writes=[made], succeeded=True, now=float(turn)
        )
    [found] = facts
    assert isinstance(found, HotLoop)
    assert found.changes == ("spec.replicas: 2 -> 3",)


def test_last_of_several_field_owners_is_reported() -> None:
    seen = [owns("zoe", 5, "replicas"), owns("hpa", 9, "replicas"), owns("abe", 7, "replicas")]
    [found] = drive_fight_with_looks(HotLoops(OPTIONS), seen=seen)[0]
    assert isinstance(found, HotLoop)
    assert found.other == "hpa"


def test_echo_of_own_last_write_needs_no_read() -> None:
    loops = HotLoops(OPTIONS)
    assert drive_fight_with_looks(loops, seen=None, turns=4) == ([], [])
    assert loops.wants_to_see("default/a", triggers=[foreign(8)]) is None, "the version that we wrote"
    assert loops.wants_to_see("default/a", triggers=[foreign(9)]) == ("apps/v1/Deployment", "default/web")


def test_most_recently_written_objects_are_observed() -> None:
    loops = HotLoops(OPTIONS)
    for number in range(30):
        metadata = {"name": f"other-{number}", "namespace": "default", "uid": f"u{number}", "resourceVersion": "1"}
        made = wrote(None, Resource.from_dict({"metadata": metadata}, kinds.DEPLOYMENT), verb="create")
        loops.observe("default/a", triggers=[], writes=[made], succeeded=True, now=0.0)
    assert len(drive_self_loop(loops, times=4)) == 1


def fields_of(manager: str, at: str, *names: str, **more: str) -> dict[str, Any]:
    spec: dict[str, Any] = {f"f:{name}": {} for name in names}
    entry = {"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": spec}, **more}
    return {**entry, "time": at} if at else entry


def other(
    *,
    before: Sequence[dict[str, Any]] = (),
    after: Sequence[dict[str, Any]] = (),
    last: Sequence[dict[str, Any]] | None = None,
    seen: Sequence[dict[str, Any]] = (),
    triggers: Sequence[Trigger] = (),
) -> str:
    def owned(version: int, entries: Sequence[dict[str, Any]]) -> Resource:
        return fought_over(version, 3, *entries)

    earlier = None if last is None else owned(2, last)
    write = wrote(owned(3, before), owned(4, after))
    return _other(write, triggers, earlier, [("spec", "replicas")], seen=seen)


OURS = fields_of("deltaloop", "5", "replicas")


def by(origin: str, *, uid: str = "u") -> Trigger:
    obj = Resource.from_dict({"metadata": {"name": "web", "namespace": "default", "uid": uid}}, kinds.DEPLOYMENT)
    return Trigger(source="owner", verb="update", reference=reference_to(obj, kinds.DEPLOYMENT), origin=origin)


@pytest.mark.parametrize(
    ("triggers", "named"),
    [
        ([by("first, reconcile 1"), by("second, reconcile 2")], "second"),
        ([by("first, reconcile 1"), by("self, reconcile 2"), by("")], "first"),
        ([by("selfish, reconcile 1")], "selfish"),
        ([by("first, reconcile 1", uid="another")], "hpa"),
        ([Trigger(source="timer", verb="tick", origin="first, reconcile 1")], "hpa"),
        ([], "hpa"),
    ],
)
def test_other_writer_can_be_controller_of_same_program(triggers: list[Trigger], named: str) -> None:
    assert other(triggers=triggers, before=[fields_of("hpa", "7", "replicas")]) == named


def test_managers_read_from_server_precede_cached_managers() -> None:
    before, seen = [fields_of("cached", "9", "replicas")], [fields_of("asked", "1", "replicas")]
    assert other(before=before, seen=seen) == "asked"
    assert other(before=before) == "cached"


def test_writer_that_removed_field_is_new_foreign_manager() -> None:
    there = fields_of("there", "9", "template")
    assert other(before=[there, fields_of("hpa", "7", "paused")], last=[OURS, there]) == "hpa"
    assert other(before=[there], last=[OURS, there]) == "", "it was there before"
    assert other(before=[fields_of("deltaloop", "7", "paused")], last=[OURS]) == "", "that is we"
    for changed in ({"operation": "Apply"}, {"subresource": "status"}):
        entry = fields_of("deltaloop", "7", "paused", **changed)
        assert other(before=[entry], last=[OURS]) == "deltaloop", "another part of the same program"
    # Ours is what had the fields, and not every other entry of our last answer.
    assert other(before=[fields_of("hpa", "7", "paused")], last=[OURS, fields_of("hpa", "6", "template")]) == "hpa"
    assert other(before=[fields_of("hpa", "7", "paused")]) == "hpa"


def test_writer_between_own_responses_is_reported_without_field_owner() -> None:
    def between(*entries: dict[str, Any]) -> str:
        return other(
            last=[OURS, fields_of("old", "3", "template")], after=[fields_of("deltaloop", "8", "replicas"), *entries]
        )

    assert between(fields_of("hpa", "7", "paused")) == "hpa"
    assert between(fields_of("hpa", "5", "paused")) == "hpa", "in the same second"
    assert between(fields_of("hpa", "4", "paused")) == "", "before our last answer"
    assert between(fields_of("hpa", "", "paused")) == "", "nobody knows when"
    assert between(fields_of("old", "3", "template")) == "", "nothing of it has changed"
    same = fields_of("hpa", "5", "template")
    after = [fields_of("deltaloop", "8", "replicas")]
    assert other(last=[OURS, same], after=[*after, same]) == "", "nor of this one"
    assert (
        other(last=[OURS, fields_of("old", "", "template")], after=[*after, fields_of("hpa", "7", "paused")]) == "hpa"
    )
    timeless = fields_of("zoe", "", "replicas")
    assert other(before=[timeless, fields_of("hpa", "7", "replicas")]) == "hpa", "the one with a time is newer"
    assert between(fields_of("hpa", "7", "replicas")) == "", "whoever has the fields now has them by this write"
    assert between(fields_of("zoe", "6", "paused"), fields_of("hpa", "7", "paused")) == "hpa"
    assert between() == ""
    assert other(after=[fields_of("hpa", "", "paused")]) == "hpa", "no answer before it"
    assert other(after=[{"fieldsV1": {}}]) == ""


def test_field_ownership_follows_named_path_segments() -> None:
    entry: dict[str, Any] = {"fieldsV1": {"f:spec": {"f:containers": {"k:{}": {}}, "f:replicas": {}}}}
    for path, owned in (
        (("spec", "replicas"), True),
        (("spec", "containers", 0, "image"), True),
        (("spec", "paused"), False),
        (("spec", "replicas", "more"), False),
        (("status",), False),
    ):
        assert _owns_any(entry, [path]) is owned
    assert _owns_any(entry, [("status",), ("spec", "replicas")])
    assert not _owns_any({}, [("spec",)])
    assert not _owns_any({"fieldsV1": "text f:spec"}, [("spec",)])


def test_calm_key_needs_less_than_1600_bytes() -> None:
    """A deque takes half a KiB however empty; and of a write only what became of the object is looked at later."""
    loops = HotLoops(HotLoopOptions(limit=200))
    after = deployment(2, replicas=2)
    tracemalloc.start()
    try:
        for number in range(200):
            write = wrote(deployment(1, text="x" * 4000), after)
            loops.observe(f"default/{number}", triggers=[echo(after)], writes=[write], succeeded=True, now=0.0)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(loops) == 200
    assert held / 200 < 1600, f"{held / 200:.0f} bytes for each key"


def created(number: int, *, name: str = "web", generate: str = "") -> OwnWrite:
    metadata = {"name": name, "namespace": "default", "uid": f"u{number}", "resourceVersion": str(number)}
    made = Resource.from_dict({"metadata": {**metadata, **({"generateName": generate} if generate else {})}}, kinds.JOB)
    return wrote(None, made, verb="create", kind=kinds.JOB)


def test_recreating_object_deleted_by_others_is_fight() -> None:
    loops = HotLoops(OPTIONS)
    facts: list[Fact] = []
    for number in range(1, 10):
        writes = [created(number)]
        facts += loops.observe(
            "default/a", triggers=[echo(deployment(1), "")], writes=writes, succeeded=True, now=number
        )
    [found] = facts
    assert isinstance(found, HotLoop)
    assert (found.cause, found.object_key, found.changes) == ("fight", "default/web", ("metadata.uid: u4 -> u5",))
    assert loops.delay("default/a", 9.0) > 0


def test_own_deletes_and_generated_names_are_no_fight() -> None:
    for generate in ("", "web-"):
        loops = HotLoops(OPTIONS)
        for number in range(1, 100):
            made = created(number, name=f"web-{number}" if generate else "web", generate=generate)
            gone = msgspec.structs.replace(made, verb="delete", version="", before=made.after, after=None)
            writes = [made] if generate else [made, gone]
            triggers = [echo(deployment(1), "")]
            assert not loops.observe("default/a", triggers=triggers, writes=writes, succeeded=True, now=number / 10)


def test_two_writers_of_one_status_field_are_a_fight() -> None:
    def with_status(version: int, replicas: int) -> Resource:
        state = deployment(version).to_dict() | {"status": {"replicas": replicas}}
        return Resource.from_dict(state, kinds.DEPLOYMENT)

    loops, facts = HotLoops(OPTIONS), list[Fact]()
    for turn in range(10):
        theirs, ours = with_status(2 * turn + 1, 5), with_status(2 * turn + 2, 3)
        write = msgspec.structs.replace(wrote(theirs, ours, verb="patch"), subresource="status")
        facts += loops.observe("default/a", triggers=[echo(theirs, "")], writes=[write], succeeded=True, now=turn)
    [hot] = facts
    assert isinstance(hot, HotLoop)
    assert hot.cause == "fight"
