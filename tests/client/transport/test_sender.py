from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.status import ForbiddenError, NotFoundError, ServiceUnavailableError, TooManyRequestsError
from deltaloop.client import (
    Client,
    ClientConfig,
    ClientOptions,
    Headers,
    HttpRequest,
    HttpTransport,
    Pool,
    ServerWarning,
)
from deltaloop.client.transport.sender import RequestSender
from deltaloop.errors import RequestTimeoutError, StreamEndedError, TransportError
from tests.client.fake_transport import After, FakeTransport, Pause, Stream, json_answer, logged, pod, text_answer
from tests.having import having

OK = json_answer({"fine": True})
BUSY = text_answer("Too many requests", status=429, headers=[("Retry-After", "3")])


def broken() -> TransportError:
    return TransportError("reset", method="GET", path="/x")


def sender_over(transport: FakeTransport) -> RequestSender:
    return RequestSender(transport, default_timeout=30.0)


async def test_sender_waits_for_retry_after() -> None:
    transport = FakeTransport(BUSY, BUSY, OK)
    answer = await sender_over(transport).send("POST", "/x", body=b"{}")
    assert answer is OK
    assert transport.sent_at == [0.0, 3.0, 6.0]
    assert [request.timeout for request in transport.requests] == [30.0, 27.0, 24.0]
    assert all(request.body == b"{}" for request in transport.requests)


async def test_throttled_requests_are_counted_for_a_minute() -> None:
    found, evicted = json_answer(pod("a")), json_answer({"kind": "Status", "status": "Success"}, status=201)
    transport = FakeTransport(BUSY, BUSY, found, BUSY, evicted)
    client = Client(ClientConfig(server="http://fake", namespace="default"), transport=transport)
    await client.get("v1/Pod", "a")
    await asyncio.sleep(10.0)
    seen = client.statistics()
    assert (seen.throttled, seen.throttled_ago, seen.failed_groups) == (2, 13.0, ())
    await client.evict("a")
    assert client.statistics().throttled == 2, "a disruption budget rejects evictions"
    await asyncio.sleep(60.0)
    assert (client.statistics().throttled, client.statistics().throttled_ago) == (0, None)


async def test_retry_after_beyond_timeout_fails_immediately() -> None:
    transport = FakeTransport(text_answer("", status=503, headers=[("retry-after", "30")]))
    with pytest.raises(ServiceUnavailableError) as caught:
        await sender_over(transport).send("GET", "/x")
    assert caught.value.retry_after == 30.0
    assert asyncio.get_running_loop().time() == 0.0


async def test_query_with_invalid_unicode_is_rejected() -> None:
    """A selector without its value selects more."""
    transport = FakeTransport(OK)
    nowhere = RequestSender(HttpTransport(ClientConfig(server="http://127.0.0.1:1")), default_timeout=5.0)
    with pytest.raises(InvalidArgumentError, check=having(argument="query parameter 'labelSelector'")):
        await nowhere.send("DELETE", "/x", query={"labelSelector": "app=\ud800"})
    assert await sender_over(transport).send("DELETE", "/x", query={"labelSelector": "app=\U0001f600"}) is OK


async def test_request_is_retried_at_most_ten_times() -> None:
    transport = FakeTransport(*[text_answer("", status=429, headers=[("retry-after", "1")])] * 11)
    with pytest.raises(TooManyRequestsError):
        await sender_over(transport).send("GET", "/x")
    assert transport.sent_at == [float(second) for second in range(11)]


async def test_refused_connection_is_not_retried() -> None:
    refused = TransportError("refused", method="GET", path="/x", refused=True)
    transport = FakeTransport(refused)
    with pytest.raises(TransportError) as caught:
        await sender_over(transport).send("GET", "/x")
    assert caught.value is refused
    assert not refused.sent


async def test_broken_connection_is_retried_for_get_and_not_post() -> None:
    transport = FakeTransport(broken(), OK)
    assert await sender_over(transport).send("GET", "/x") is OK
    assert transport.sent_at == [0.0, 1.0]
    with pytest.raises(TransportError):
        await sender_over(FakeTransport(broken())).send("POST", "/x", body=b"{}")


async def test_timeout_is_passed_to_transport() -> None:
    late = RequestTimeoutError("late", method="GET", path="/x")
    transport = FakeTransport(After(5.0, late))
    with pytest.raises(RequestTimeoutError):
        await sender_over(transport).send("GET", "/x", timeout=5.0)
    assert transport.requests[0].timeout == 5.0


async def test_request_has_query_headers_and_pool() -> None:
    transport = FakeTransport(OK, OK)
    sender = sender_over(transport)
    await sender.send("GET", "/x", query={"limit": "5"}, pool=Pool.LEADER_ELECTION)
    await sender.send("PATCH", "/x", body=b"{}", content_type="application/merge-patch+json")
    first, second = transport.requests
    assert (first.headers, first.query, first.pool) == (
        {"Accept": "application/json"},
        {"limit": "5"},
        Pool.LEADER_ELECTION,
    )
    assert second.headers == {"Accept": "application/json", "Content-Type": "application/merge-patch+json"}
    assert second.pool is Pool.REQUESTS


async def test_cancellation_ends_wait_for_retry() -> None:
    transport = FakeTransport(BUSY)
    task = asyncio.create_task(sender_over(transport).send("GET", "/x"))
    await asyncio.sleep(1.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(transport.requests) == 1


async def test_the_log_has_method_path_status_and_duration_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    transport = FakeTransport(After(0.5, json_answer({"secret": "s3cret"}, headers=[("Set-Cookie", "s3cret")])))
    await sender_over(transport).send("POST", "/x", query={"labelSelector": "s3cret"}, body=b"s3cret")
    (record,) = logged(caplog)
    assert record.getMessage() == "request"
    shown = {name: record.__dict__[name] for name in ("method", "path", "status", "duration")}
    assert shown == {"method": "POST", "path": "/x", "status": 200, "duration": 0.5}
    assert "s3cret" not in repr(record.__dict__)


async def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    warned = json_answer({}, headers=[("Warning", '299 - "old API"'), ("warning", '299 - "unknown field"')])
    sender = sender_over(FakeTransport(warned, warned))
    await sender.send("GET", "/x")
    await sender.send("GET", "/x")
    assert [record.__dict__["warning"] for record in logged(caplog)] == ["old API", "unknown field"]
    assert {record.levelno for record in logged(caplog)} == {logging.WARNING}


async def test_rejected_stream_raises_error() -> None:
    transport = FakeTransport(Stream((b"404 page ", b"not found\n"), status=404))
    with pytest.raises(NotFoundError, match="404 page not found"):
        async with sender_over(transport).stream("/x", query={}):
            pass
    assert transport.open_streams == 0


async def test_endless_error_body_is_cut_at_timeout() -> None:
    script = (b"not your day", Pause(1000.0), b"more")
    transport = FakeTransport(
        Stream(script, status=503, headers=Headers([("retry-after", "4")])), Stream((b"x" * 70_000,) * 1000, status=500)
    )
    sender = sender_over(transport)
    with pytest.raises(ServiceUnavailableError, match="not your day") as caught:
        async with sender.stream("/x", query={}, timeout=10.0):
            pass
    assert caught.value.retry_after == 4.0
    assert asyncio.get_running_loop().time() == 10.0
    with pytest.raises(Exception, match="500"):
        async with sender.stream("/x", query={}):
            pass


# --- A body that is taken while it comes ---


class Collected:
    """Keeps the slices of one try."""

    def __init__(self) -> None:
        self.slices: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        self.slices.append(chunk)


async def test_body_is_forwarded_while_it_arrives() -> None:
    transport = FakeTransport(Stream((b"a", Pause(1.0), b"b")))
    taken = await sender_over(transport).receive("/x", query={"limit": "1"}, sink=Collected, pool=Pool.LEADER_ELECTION)
    assert taken.slices == [b"a", b"b"]
    (request,) = transport.requests
    assert (request.method, request.bounded, request.pool) == ("GET", True, Pool.LEADER_ELECTION)
    assert transport.open_streams == 0


async def test_truncated_body_is_requested_again_with_new_sink() -> None:
    broken_off = StreamEndedError("reset", method="GET", path="/x")
    transport = FakeTransport(Stream((b"half", broken_off)), BUSY, Stream((b"whole",)))
    assert (await sender_over(transport).receive("/x", query={}, sink=Collected)).slices == [b"whole"]
    assert transport.sent_at == [0.0, 1.0, 4.0]


async def test_body_that_exceeds_timeout_raises_error() -> None:
    transport = FakeTransport(Stream((b"half", Pause(100.0), b"late")))
    with pytest.raises(RequestTimeoutError, match="5 s") as caught:
        await sender_over(transport).receive("/x", query={}, sink=Collected, timeout=5.0)
    assert caught.value.sent
    assert asyncio.get_running_loop().time() == 5.0
    assert transport.open_streams == 0


async def test_rejected_list_has_message_of_server() -> None:
    transport = FakeTransport(text_answer("404 page not found", status=404))
    with pytest.raises(NotFoundError, match="404 page not found"):
        await sender_over(transport).receive("/x", query={}, sink=Collected)


# --- Rate, warnings, metrics ---


class Counted:
    """Writes down what is measured."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    def request_done(self, *, code: str, method: str, host: str) -> None:
        self.seen.append(("done", code, method, host))

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        self.seen.append(("duration", seconds, verb, host))

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        self.seen.append(("limiter", seconds, verb, host))

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        self.seen.append(("retried", code, verb, host))


def limited(transport: FakeTransport, *, qps: float, burst: int) -> RequestSender:
    return RequestSender(transport, default_timeout=30.0, options=ClientOptions(qps=qps, burst=burst))


async def test_no_limit_by_default() -> None:
    transport = FakeTransport(*[OK] * 100)
    sender = sender_over(transport)
    await asyncio.gather(*(sender.send("GET", "/x") for _ in range(100)))
    assert set(transport.sent_at) == {0.0}


async def test_qps_and_burst() -> None:
    transport = FakeTransport(*[OK] * 6)
    sender = limited(transport, qps=2.0, burst=2)
    await asyncio.gather(*(sender.send("GET", "/x") for _ in range(6)))
    assert transport.sent_at == [0.0, 0.0, 0.5, 1.0, 1.5, 2.0]


async def test_rate_limit_applies_to_retries_and_streams() -> None:
    transport = FakeTransport(text_answer("", status=429, headers=[("retry-after", "1")]), OK, Stream((b"x",)))
    sender = limited(transport, qps=0.25, burst=1)
    await sender.send("GET", "/x")
    async with sender.stream("/x", query={}):
        pass
    assert transport.sent_at == [0.0, 4.0, 8.0]


async def test_leader_election_does_not_wait_for_others() -> None:
    transport = FakeTransport(*[OK] * 3)
    sender = limited(transport, qps=0.1, burst=1)
    await sender.send("GET", "/x")
    await asyncio.gather(*(sender.send("GET", "/x", pool=Pool.LEADER_ELECTION) for _ in range(2)))
    assert transport.sent_at == [0.0, 0.0, 0.0]


async def test_rate_limit_beyond_timeout_fails_immediately_and_releases_slot() -> None:
    transport = FakeTransport(*[OK] * 2)
    sender = limited(transport, qps=0.1, burst=1)
    await sender.send("GET", "/x")
    with pytest.raises(RequestTimeoutError, match=r"ClientOptions\.qps") as caught:
        await sender.send("GET", "/x", timeout=5.0)
    assert not caught.value.sent
    await sender.send("GET", "/x")
    assert transport.sent_at == [0.0, 10.0]


async def test_cancellation_releases_slot_of_rate_limit() -> None:
    transport = FakeTransport(*[OK] * 2)
    sender = limited(transport, qps=0.1, burst=1)
    await sender.send("GET", "/x")
    waits = asyncio.create_task(sender.send("POST", "/x"))
    await asyncio.sleep(1.0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    await sender.send("GET", "/x")
    assert transport.sent_at == [0.0, 10.0]


async def test_warnings_reach_the_caller_each_time() -> None:
    warned = json_answer({}, headers=[("Warning", '299 - "old \\"API\\"", 299 - "b"'), ("warning", '299 - "b"')])
    sender = sender_over(FakeTransport(warned, warned, Stream((), headers=warned.headers)))
    seen: list[ServerWarning] = []
    await sender.send("POST", "/x", on_warning=seen.append)
    assert seen == [ServerWarning('old "API"', "POST", "/x"), ServerWarning("b", "POST", "/x")]
    await sender.send("GET", "/x", on_warning=seen.append)
    async with sender.stream("/x", query={}, on_warning=seen.append):
        pass
    assert len(seen) == 6


async def test_metrics() -> None:
    counted = Counted()
    transport = FakeTransport(
        After(0.5, BUSY),
        OK,
        TransportError("reset", method="POST", path="/x"),
        Stream((b"x", Pause(9.0))),
        Stream((), status=410),
        After(2.0, json_answer([])),
    )
    sender = RequestSender(transport, default_timeout=30.0, host="h:1", options=ClientOptions(metrics=counted))
    await sender.send("GET", "/x")
    with pytest.raises(TransportError):
        await sender.send("POST", "/x")
    async with sender.stream("/x", query={}) as answer:
        assert [chunk async for chunk in answer.chunks] == [b"x"]
    with pytest.raises(Exception, match="410"):
        async with sender.stream("/x", query={}):
            pass
    await sender.receive("/x", query={}, sink=Collected)
    assert counted.seen == [
        ("done", "429", "GET", "h:1"),
        ("duration", 0.5, "GET", "h:1"),
        ("retried", "429", "GET", "h:1"),
        ("done", "200", "GET", "h:1"),
        ("duration", 0.0, "GET", "h:1"),
        ("done", "<error>", "POST", "h:1"),
        ("duration", 0.0, "POST", "h:1"),
        ("done", "200", "GET", "h:1"),
        ("duration", 0.0, "GET", "h:1"),
        ("done", "410", "GET", "h:1"),
        ("duration", 0.0, "GET", "h:1"),
        ("done", "200", "GET", "h:1"),
        ("duration", 2.0, "GET", "h:1"),
    ]


async def test_wait_for_rate_limit_is_measured() -> None:
    counted = Counted()
    options = ClientOptions(metrics=counted, qps=1.0, burst=1)
    sender = RequestSender(FakeTransport(OK, OK), default_timeout=30.0, host="h", options=options)
    await asyncio.gather(sender.send("GET", "/x"), sender.send("GET", "/x"))
    assert [entry for entry in counted.seen if entry[0] == "limiter"] == [
        ("limiter", 0.0, "GET", "h"),
        ("limiter", 1.0, "GET", "h"),
    ]


async def test_metrics_that_fail_do_not_fail_the_request(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Counted):
        def request_done(self, *, code: str, method: str, host: str) -> None:
            raise ZeroDivisionError

    options = ClientOptions(metrics=Failing())
    assert await RequestSender(FakeTransport(OK), default_timeout=30.0, options=options).send("GET", "/x") is OK
    assert [record.getMessage() for record in logged(caplog)] == ["a metrics hook of the client raised"]


# --- What those who look on are told ---


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[object, ...]]:
    """Level and extras of what was logged."""
    names = ("method", "path", "status", "duration", "wait", "error_type", "warning", "host")
    return [
        (record.levelname, {name: record.__dict__[name] for name in names if name in record.__dict__})
        for record in logged(caplog)
    ]


async def test_request_hook_is_called_once_per_request() -> None:
    seen: list[tuple[object, ...]] = []

    def note(method: str, path: str, query: Mapping[str, str], content_type: str) -> None:
        seen.append((method, path, query, content_type))

    options = ClientOptions(on_request=note)
    transport = FakeTransport(BUSY, OK, OK, OK, BUSY, Stream((b"a",)), Stream((b"b",)))
    sender = RequestSender(transport, default_timeout=30.0, options=options)
    await sender.send("GET", "/a")
    await sender.send("PUT", "/b", query={"dryRun": "All"}, body=b"{}", content_type="x/y")
    await sender.send("DELETE", "/c")
    await sender.receive("/d", query={"limit": "5"}, sink=Collected)
    async with sender.stream("/e", query={"watch": "true"}):
        pass
    assert seen == [
        ("GET", "/a", {}, ""),
        ("PUT", "/b", {"dryRun": "All"}, "x/y"),
        ("DELETE", "/c", {}, ""),
        ("GET", "/d", {"limit": "5"}, ""),
        ("GET", "/e", {"watch": "true"}, ""),
    ]


async def test_failing_request_hook_does_not_fail_request(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("hook")

    sender = RequestSender(
        FakeTransport(OK, OK), default_timeout=30.0, host="h:1", options=ClientOptions(on_request=fail)
    )
    assert await sender.send("GET", "/x") is OK
    assert await sender.send("GET", "/x") is OK
    first, second = logged(caplog)
    assert (first.levelname, first.getMessage(), first.__dict__["host"]) == (
        "ERROR",
        "a request hook of the client raised",
        "h:1",
    )
    assert "ZeroDivisionError" in first.__dict__["raised"]
    assert first.exc_info, "the first one has its traceback"
    assert not second.exc_info, "and the next one not again"


async def test_retry_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    transport = FakeTransport(BUSY, broken(), OK)
    await sender_over(transport).send("GET", "/x")
    assert told(caplog) == [
        ("WARNING", {"method": "GET", "path": "/x", "wait": 3.0, "error_type": "TooManyRequestsError"}),
        ("WARNING", {"method": "GET", "path": "/x", "wait": 1.0, "error_type": "TransportError"}),
    ]


async def test_request_without_response_is_logged_and_measured(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    sender = sender_over(FakeTransport(After(2.0, broken()), Stream((b"x",))))
    with pytest.raises(TransportError):
        await sender.send("POST", "/x")
    assert told(caplog) == [
        ("DEBUG", {"method": "POST", "path": "/x", "duration": 2.0, "error_type": "TransportError"}),
    ]


async def test_retries_are_counted_by_failure() -> None:
    counted = Counted()
    sender = RequestSender(
        FakeTransport(broken(), OK), default_timeout=30.0, host="h", options=ClientOptions(metrics=counted)
    )
    await sender.send("GET", "/x")
    assert [entry for entry in counted.seen if entry[0] == "retried"] == [("retried", "<error>", "GET", "h")]


async def test_stream_is_logged_at_start_and_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    warned = Headers([("Warning", '299 - "old"')])
    sender = sender_over(FakeTransport(Stream((b"a", Pause(9.0)), headers=warned)))
    async with sender.stream("/x", query={}) as answer:
        assert [chunk async for chunk in answer.chunks] == [b"a"]
    where = {"method": "GET", "path": "/x"}
    assert told(caplog) == [
        ("DEBUG", {**where, "status": 200, "duration": 0.0}),
        ("WARNING", {**where, "warning": "old"}),
        ("DEBUG", {**where, "duration": 9.0}),
    ]


async def test_unopened_and_broken_streams_are_counted_once() -> None:
    counted = Counted()
    broken_off = StreamEndedError("reset", method="GET", path="/x")
    await asyncio.sleep(7.0)
    transport = FakeTransport(After(2.0, broken()), Stream((b"a", Pause(5.0), broken_off)))
    sender = RequestSender(transport, default_timeout=30.0, host="h", options=ClientOptions(metrics=counted))
    with pytest.raises(TransportError, match="reset"):
        async with sender.stream("/x", query={}):
            pass

    async def read() -> None:
        async with sender.stream("/x", query={}) as answer:
            async for _ in answer.chunks:
                pass

    with pytest.raises(StreamEndedError):
        await read()
    assert counted.seen == [
        ("done", "<error>", "GET", "h"),
        ("duration", 2.0, "GET", "h"),
        ("done", "200", "GET", "h"),
        ("duration", 0.0, "GET", "h"),
    ]


async def test_warnings_of_a_list_reach_the_caller_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[ServerWarning] = []
    sender = sender_over(FakeTransport(Stream((b"x",), headers=Headers([("warning", '299 - "old"')]))))
    await sender.receive("/x", query={}, sink=Collected, on_warning=seen.append)
    assert seen == [ServerWarning("old", "GET", "/x")]
    assert told(caplog) == [("WARNING", {"method": "GET", "path": "/x", "warning": "old"})]


@pytest.mark.parametrize(
    ("qps", "wait", "level"), [(2.0, 0.5, "DEBUG"), (1.0, 1.0, "DEBUG"), (0.8, 1.25, "WARNING"), (0.5, 2.0, "WARNING")]
)
async def test_wait_for_rate_limit_is_logged_by_duration(
    qps: float, wait: float, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.client")
    sender = limited(FakeTransport(OK, OK), qps=qps, burst=1)
    await sender.send("GET", "/a")
    await sender.send("PUT", "/b")
    waits = [entry for entry in told(caplog) if "wait" in str(entry[1])]
    assert waits == [(level, {"method": "PUT", "path": "/b", "wait": wait})]


async def test_slot_at_end_of_timeout_is_used() -> None:
    transport = FakeTransport(OK, OK)
    sender = limited(transport, qps=0.1, burst=1)
    await sender.send("GET", "/x")
    await sender.send("GET", "/x", timeout=10.0)
    assert transport.sent_at == [0.0, 10.0]
    assert transport.requests[1].timeout == 0.0


async def test_error_of_rate_limit_beyond_timeout_names_request() -> None:
    sender = limited(FakeTransport(OK), qps=0.1, burst=1)
    await sender.send("GET", "/x")
    with pytest.raises(RequestTimeoutError, match=r"PUT /y: .* 0\.1 .* 10\.0 s") as caught:
        await sender.send("PUT", "/y", timeout=9.0)
    assert (caught.value.method, caught.value.path, caught.value.sent) == ("PUT", "/y", False)
    assert asyncio.get_running_loop().time() == 0.0


async def test_error_of_endless_body_names_request() -> None:
    sender = sender_over(FakeTransport(Stream((Pause(100.0),))))
    with pytest.raises(RequestTimeoutError, match="GET /x: ") as caught:
        await sender.receive("/x", query={}, sink=Collected, timeout=5.0)
    assert (caught.value.method, caught.value.path) == ("GET", "/x")


async def test_timeout_error_of_sink_is_not_converted() -> None:
    class Impatient(Collected):
        def feed(self, chunk: bytes) -> None:
            raise TimeoutError("the sink's own")

    with pytest.raises(TimeoutError, match="the sink's own") as caught:
        await sender_over(FakeTransport(Stream((b"a",)))).receive("/x", query={}, sink=Impatient)
    assert type(caught.value) is TimeoutError


# --- What is asked before a write ---


async def test_write_check_is_called_before_each_attempt() -> None:
    asked: list[str] = []
    transport = FakeTransport(BUSY, OK)
    await sender_over(transport).exchange(HttpRequest("PUT", "/x", before_send=lambda: asked.append("PUT")), 30.0)
    assert asked == ["PUT"] * 2
    for request in transport.requests:
        assert request.before_send is not None
        request.before_send()
    assert asked == ["PUT"] * 4


# --- How much of a refusal is read ---


@pytest.mark.parametrize(("rest", "read_until"), [(b"x", 3.0), (b"", 30.0)])
async def test_error_body_is_read_up_to_64_kib(rest: bytes, read_until: float) -> None:
    script = (b"x" * (64 * 1024 - 1), Pause(3.0), rest, Pause(1000.0), b"more")
    sender = sender_over(FakeTransport(Stream(script, status=403), Stream(script, status=403)))
    with pytest.raises(ForbiddenError):
        await sender.receive("/x", query={}, sink=Collected)
    assert asyncio.get_running_loop().time() == read_until
    with pytest.raises(ForbiddenError):
        async with sender.stream("/x", query={}):
            pass
    assert asyncio.get_running_loop().time() == 2 * read_until


async def test_truncated_error_body_keeps_status() -> None:
    script = (b"not your day", StreamEndedError("reset", method="GET", path="/x"))
    with pytest.raises(ForbiddenError, match="not your day"):
        await sender_over(FakeTransport(Stream(script, status=403))).receive("/x", query={}, sink=Collected)


async def test_errors_have_request_and_retry_after() -> None:
    answer = Stream((b"later",), status=503, headers=Headers([("Retry-After", "40")]))
    with pytest.raises(ServiceUnavailableError, match=r"GET /x: .*503: later") as caught:
        await sender_over(FakeTransport(answer)).receive("/x", query={}, sink=Collected)
    assert caught.value.retry_after == 40.0
    with pytest.raises(ForbiddenError, match=r"PUT /y: .*403"):
        await sender_over(FakeTransport(text_answer("", status=403))).send("PUT", "/y")


async def test_time_limits_of_streams_and_lists() -> None:
    transport = FakeTransport(*[Stream(())] * 4)
    sender = sender_over(transport)
    for timeout in (None, 7.0):
        await sender.receive("/x", query={}, sink=Collected, accept="a/b", timeout=timeout)
        async with sender.stream("/x", query={"a": "b"}, accept="c/d", timeout=timeout):
            pass
    assert [request.timeout for request in transport.requests] == [30.0, 30.0, 7.0, 7.0]
    assert [request.headers for request in transport.requests] == [{"Accept": "a/b"}, {"Accept": "c/d"}] * 2
    assert [request.bounded for request in transport.requests] == [True, False] * 2
    assert {request.method for request in transport.requests} == {"GET"}
    assert transport.requests[1].query == {"a": "b"}


async def test_list_with_infinite_timeout_completes() -> None:
    transport = FakeTransport(Stream((Pause(1e6), b"a")))
    taken = await sender_over(transport).receive("/x", query={}, sink=Collected, timeout=float("inf"))
    assert taken.slices == [b"a"]


async def test_lists_of_leader_election_do_not_wait_for_others() -> None:
    transport = FakeTransport(OK, Stream((b"a",)))
    sender = limited(transport, qps=0.1, burst=1)
    await sender.send("GET", "/x")
    await sender.receive("/x", query={}, sink=Collected, pool=Pool.LEADER_ELECTION)
    assert transport.sent_at == [0.0, 0.0]
