"""What is told of one reconcile: by metrics, the log, the history and its span."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from deltaloop.api.references import Trigger
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import RequestTimeoutError
from deltaloop.runtime import Context, HotLoopOptions, controller
from deltaloop.runtime.core.history import History, Reconciled
from deltaloop.runtime.core.hot_loop import Cause, Cooled, HotLoop, HotLoops
from deltaloop.runtime.core.outcomes import Case, KeyDecision, Raised, Returned, Stopped, decide
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.reconcile import observing
from deltaloop.runtime.reconcile.execution import Execution
from deltaloop.runtime.reconcile.metrics import GuardedControllerMetrics
from deltaloop.runtime.reconcile.observing import Observer
from deltaloop.runtime.reconcile.tracing import Tracing, end, reasons
from tests.client.fake_transport import FakeTransport, json_answer
from tests.runtime.reconcile.test_context import context
from tests.runtime.reconcile.test_metrics import Hooks
from tests.runtime.worlds import CM, client_of_reconcile, held


def execution(of: Context) -> Execution:
    """Return a reconcile that has run for 1.5 s at 100.0."""
    return Execution(of.request.key, of.number, 98.5, None, context=of)


class Watched:
    """An observer of a controller that has hooks."""

    def __init__(self, *, hot: HotLoops | None = None, **options: Any) -> None:
        self.hooks: Any = Hooks()
        self.history = History()
        declared = controller("v1/ConfigMap", name="maps", **options)(nothing)
        metrics = GuardedControllerMetrics(self.hooks, "maps")
        with pytest.MonkeyPatch.context() as patched:
            if hot is not None:
                given = hot
                patched.setattr(observing, "HotLoops", lambda options: given)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
            self.observer = Observer(declared, metrics, history=self.history, tracing=Tracing())

    def ended(self, of: Context, decision: KeyDecision) -> Reconciled:
        self.observer.ended(execution(of), decision, now=100.0)
        return self.history.about("", frozenset({of.request.key}))[0]


async def nothing(request: object, ctx: object) -> None: ...


async def having_written(number: int) -> Context:
    def answer(version: int) -> Any:
        fields = {"metadata": {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": str(version)}}
        return json_answer({"apiVersion": "v1", "kind": "ConfigMap", **fields})

    transport = FakeTransport(*[answer(version) for version in range(number)])
    client = Client(ClientConfig(server="http://fake"), transport=transport)
    own = client_of_reconcile(client, Views(), "maps", 7)
    for _ in range(number):
        await own.patch(CM, "a", {}, subresource="status")
    return context(client=own)


# -- one that has ended


async def test_end_of_reconcile_reaches_metrics_history_and_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    watched = Watched()
    of = context()
    run = watched.ended(of, decide(Returned(None)))
    assert watched.hooks.told == [("reconciled", "maps", "success", (), 1.5)]
    assert run == Reconciled(
        controller="maps",
        kind="v1/ConfigMap",
        key="default/a",
        number=7,
        ended_at=100.0,
        seconds=1.5,
        attempt=3,
        result="success",
        error="",
        triggers=of.triggers,
        triggers_dropped=2,
        writes=(),
        writes_dropped=0,
    )
    [record] = caplog.records
    told = vars(record)
    assert (record.getMessage(), record.levelno, told["key"]) == ("reconciled", logging.DEBUG, "default/a")
    assert (told["result"], told["seconds"], told["attempt"]) == ("success", 1.5, 3)
    assert (told["triggers"], told["triggers_dropped"]) == ([str(of.triggers[0])], 2)


async def test_failure_is_recorded_by_type_without_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    watched = Watched()
    run = watched.ended(context(), decide(Raised(ValueError("planted"))))
    counters = ("controller_runtime_reconcile_errors_total",)
    assert watched.hooks.told == [("reconciled", "maps", "error", counters, 1.5)]
    assert (run.result, run.error) == ("error", "ValueError")
    assert "planted" not in repr([run, [vars(record) for record in caplog.records]])


async def test_interruption_is_recorded_but_not_counted() -> None:
    watched = Watched()
    run = watched.ended(context(), decide(Stopped()))
    assert watched.hooks.told == []
    assert (run.result, run.error) == ("interrupted", "")


@pytest.mark.parametrize(("number", "kept", "dropped"), [(20, 20, 0), (25, 20, 5), (103, 20, 83)])
async def test_twenty_writes_are_recorded_and_others_counted(number: int, kept: int, dropped: int) -> None:
    run = Watched().ended(await having_written(number), decide(Returned(None)))
    assert (len(run.writes), run.writes_dropped) == (kept, dropped)
    first = run.writes[0]
    assert (first.verb, first.kind, first.key, first.subresource) == ("patch", "v1/ConfigMap", "default/a", "status")
    assert [write.version for write in run.writes[:3]] == ["0", "1", "2"]


async def test_recorded_write_has_first_changed_fields() -> None:
    async with held() as h:
        data = {f"k{number}": "x" for number in range(7)}
        await h.w.put("a", **data)
        await h.catch_up()
        stored = await h.client.patch(CM, "a", {"data": dict.fromkeys(data, "y")})
        await h.client.patch(CM, "a", {})
        run = Watched().ended(context(client=h.client), decide(Returned(None)))
    assert run.writes[0].paths == tuple(f"data.k{number}" for number in range(5))
    assert [write["version"] for write in run.to_dict(0.0)["writes"]] == [stored.resource_version, ""]
    assert run.writes[1].paths == ()


# -- hot keys


class Facts(HotLoops):  # type: ignore[misc]  # of a final class
    """Says what it is told to say, and keeps what it was asked."""

    def __init__(self, *facts: HotLoop | Cooled, wait: float = 0.0) -> None:
        super().__init__(HotLoopOptions())
        self.facts = facts
        self.wait = wait
        self.watched.add("default/a")
        self.asked: list[dict[str, Any]] = []
        self.seen: list[tuple[str, tuple[str, str], str]] = []
        self.wanted: tuple[str, str] | None = None

    def observe(self, key: str, **asked: Any) -> tuple[HotLoop | Cooled, ...]:
        self.asked.append({"key": key, **asked})
        return self.facts

    def delay(self, key: str, now: float) -> float:
        return self.wait

    def wants_to_see(self, key: str, *, triggers: Sequence[Trigger]) -> tuple[str, str] | None:
        return self.wanted

    def saw(self, key: str, subject: tuple[str, str], obj: Any) -> None:
        self.seen.append((key, subject, obj.name))


def hot(cause: Cause, other: str = "") -> HotLoop:
    return HotLoop(
        key="default/a", cause=cause, kind="v1/Secret", object_key="default/s", changes=("data.x",),
        other=other, strikes=10, seconds=5.12345, interval=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fact", "words", "other"),
    [
        (hot("self"), "triggers itself", None),
        (hot("fight", "hpa"), "two writers of one object", "hpa"),
        (hot("fight"), "two writers of one object", "unknown"),
    ],
)
async def test_hot_key_is_logged_with_all_fields(
    fact: HotLoop, words: str, other: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    facts = Facts(fact)
    watched = Watched(hot=facts)
    of = context()
    watched.ended(of, decide(Returned(None)))
    assert facts.asked == [{"key": "default/a", "triggers": of.triggers, "writes": [], "succeeded": True, "now": 100.0}]
    assert watched.hooks.told[1:] == [("hot_loop", "maps", fact.cause)]
    [record] = caplog.records
    wanted = {
        "controller": "maps",
        "key": "default/a",
        "cause": fact.cause,
        "kind": "v1/Secret",
        "object": "default/s",
        "changes": ("data.x",),
        "reconciles": 10,
        "seconds": 5.123,
        "interval": 1.0,
    }
    assert (words in record.getMessage(), record.levelno) == (True, logging.WARNING)
    assert {name: vars(record)[name] for name in wanted} == wanted
    assert vars(record).get("other") == other


async def test_cooled_down_key_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = Watched(hot=Facts(Cooled(key="default/a", cause="self", seconds=30.0)))
    watched.ended(context(), decide(Returned(None)))
    told = [vars(record) for record in caplog.records if "no longer" in record.getMessage()]
    assert [(each["controller"], each["key"], each["cause"], each["seconds"]) for each in told] == [
        ("maps", "default/a", "self", 30.0)
    ]
    assert [hook[0] for hook in watched.hooks.told] == ["reconciled"]


@pytest.mark.parametrize("case", list(Case))
async def test_only_successful_reconciles_count_for_hot_loops(case: Case) -> None:
    from deltaloop.runtime.core.outcomes import ROWS

    facts = Facts()
    watched = Watched(hot=facts)
    watched.ended(context(), KeyDecision(case=case, row=ROWS[case]))
    assert facts.asked[0]["succeeded"] is (case in (Case.NOTHING, Case.AFTER))


async def test_delayed_hot_keys_are_counted() -> None:
    watched = Watched(hot=Facts(wait=0.5))
    assert watched.observer.wait("default/a", now=0.0) == 0.5
    assert watched.hooks.told == [("slowed_down", "maps")]
    calm = Watched(hot=Facts())
    assert calm.observer.wait("default/a", now=0.0) == 0.0
    assert calm.hooks.told == []
    assert Watched(hot_loops=None).observer.wait("default/a", now=0.0) == 0.0


def asking(*answers: Any) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


@pytest.mark.parametrize(
    ("subject", "path"),
    [
        (("v1/ConfigMap", "team/a"), "/api/v1/namespaces/team/configmaps/a"),
        (("v1/Namespace", "a"), "/api/v1/namespaces/a"),
    ],
)
async def test_contested_object_is_read(subject: tuple[str, str], path: str) -> None:
    facts = Facts()
    watched = Watched(hot=facts)
    client, transport = asking(json_answer({"metadata": {"name": "a"}}))
    await watched.observer.look("default/a", triggers=[], client=client)
    assert transport.requests == []
    facts.wanted = subject
    await watched.observer.look("default/a", triggers=[], client=client)
    assert [request.path for request in transport.requests] == [path]
    assert facts.seen == [("default/a", subject, "a")]
    await Watched(hot_loops=None).observer.look("default/a", triggers=[], client=client)


async def test_read_of_contested_object_times_out_after_two_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.runtime")
    facts = Facts()
    watched = Watched(hot=facts)
    facts.wanted = ("v1/ConfigMap", "team/a")
    client, transport = asking(RequestTimeoutError("no answer", method="GET", path="/"))
    await watched.observer.look("default/a", triggers=[], client=client)
    assert transport.requests[0].timeout == pytest.approx(2.0)
    assert facts.seen == []
    [told] = [vars(record) for record in caplog.records if record.name == "deltaloop.runtime"]
    assert (told["controller"], told["key"], told["kind"]) == ("maps", "default/a", "v1/ConfigMap")
    assert (told["object"], told["error"]) == ("team/a", "RequestTimeoutError")


# -- spans


class Span(trace.NonRecordingSpan):
    def __init__(self, number: int, **asked: Any) -> None:
        super().__init__(SpanContext(number, number, is_remote=False, trace_flags=TraceFlags(1)))
        self.asked = asked
        self.did: list[tuple[Any, ...]] = []

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        self.did.append((key, value))

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.did.append((status.name, description))

    def record_exception(self, exception: BaseException, *arguments: Any, **options: Any) -> None:
        self.did.append(("recorded", exception))

    def end(self, end_time: int | None = None) -> None:
        self.did.append(("ended",))


class Tracer:
    def __init__(self, *, valid: bool = True) -> None:
        self.spans: list[Span] = []
        self._valid = valid

    def of(self, name: str) -> Tracer:
        """Return itself, whoever asks for a tracer."""
        del name
        return self

    def start_span(self, name: str, **asked: Any) -> Span:
        self.spans.append(Span(len(self.spans) + 1 if self._valid else 0, name=name, **asked))
        return self.spans[-1]


def traced(monkeypatch: pytest.MonkeyPatch, tracer: Tracer) -> Tracing:
    def get_tracer(name: str) -> Tracer:
        assert name == "deltaloop.runtime"
        return tracer

    monkeypatch.setattr(trace, "get_tracer", get_tracer)
    monkeypatch.setattr(trace, "get_tracer_provider", object)  # a program has set something up
    return Tracing()


async def test_no_spans_are_created_without_tracer_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    monkeypatch.setattr(trace, "get_tracer", tracer.of)
    watched = Watched()
    assert watched.observer.begins(context(), now=5.0) is None  # the API alone is installed
    assert tracer.spans == []
    monkeypatch.setattr(trace, "get_tracer_provider", object)  # now a program sets something up
    assert watched.observer.begins(context(), now=5.9) is None
    assert watched.observer.begins(context(), now=6.0) is tracer.spans[0]


def why(source: str, verb: str, origin: str = "") -> Trigger:
    return Trigger(source=source, verb=verb, origin=origin)


async def test_span_has_attributes_of_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    tracing = traced(monkeypatch, tracer)
    triggers = (why("informer", "update"), why("informer", "update", "self, reconcile 9"), why("informer", "update"))
    assert tracing.start(context(triggers=triggers), name="maps") is tracer.spans[0]
    assert tracer.spans[0].asked == {
        "name": "reconcile maps",
        "kind": SpanKind.CONSUMER,
        "links": [],
        "attributes": {
            "deltaloop.controller": "maps",
            "deltaloop.namespace": "default",
            "deltaloop.name": "a",
            "deltaloop.reconcile": 7,
            "deltaloop.attempt": 3,
            "deltaloop.triggers": ("informer update", "self update"),
        },
    }
    assert reasons((why("z", "tick"), why("a", "tick"))) == ("a tick", "z tick")


async def test_span_has_one_link_per_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    tracing = traced(monkeypatch, tracer)
    tracing.start(context(number=1), name="maps")
    tracing.start(context(number=1), name="others")
    causes = ("self, reconcile 1", "others, reconcile 1", "self, reconcile 1", "self, reconcile 2", "")
    tracing.start(context(number=3, triggers=tuple(why("informer", "add", each) for each in causes)), name="maps")
    linked = [link.context for link in tracer.spans[2].asked["links"]]
    assert linked == [span.get_span_context() for span in tracer.spans[:2]]


async def test_latest_thousand_spans_can_be_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    tracing = traced(monkeypatch, tracer)
    of = context()
    for of.number in range(1001):
        tracing.start(of, name="maps")
    causes = tuple(why("informer", "add", f"self, reconcile {number}") for number in (0, 1))
    tracing.start(context(number=5000, triggers=causes), name="maps")
    assert [link.context for link in tracer.spans[-1].asked["links"]] == [tracer.spans[1].get_span_context()]


async def test_invalid_spans_are_not_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer(valid=False)
    tracing = traced(monkeypatch, tracer)
    tracing.start(context(number=1), name="maps")
    tracing.start(context(number=2, triggers=(why("informer", "add", "self, reconcile 1"),)), name="maps")
    assert tracer.spans[1].asked["links"] == []


async def test_span_is_current_and_ends_with_result(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Tracer()
    tracing = traced(monkeypatch, tracer)

    async def begins() -> object:
        tracing.start(context(), name="maps")
        await asyncio.sleep(0.0)
        return trace.get_current_span()

    [span] = [await asyncio.create_task(begins())]
    assert span is tracer.spans[0]
    assert isinstance(span, Span)
    assert span.did == [], "it is told at its end only"
    assert trace.get_current_span() is not span
    end(span, result="success", error=None)
    assert span.did == [("deltaloop.result", "success"), ("ended",)]
    failed = Span(2)
    end(failed, result="error", error=ValueError("planted"))
    assert failed.did == [
        ("deltaloop.result", "error"),
        ("error.type", "ValueError"),
        ("ERROR", "ValueError"),
        ("ended",),
    ]
    assert not trace.get_current_span().get_span_context().is_valid
