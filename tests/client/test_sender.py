from __future__ import annotations

import asyncio
import logging

import pytest

from deltaloop.api.status import NotFoundError, ServiceUnavailableError, TooManyRequestsError
from deltaloop.client import Headers, Pool, RequestTimeoutError, TransportError
from deltaloop.client.sender import RequestSender
from tests.client.fake_transport import After, FakeTransport, Pause, Stream, json_answer, logged, text_answer

OK = json_answer({"fine": True})
BUSY = text_answer("Too many requests", status=429, headers=[("Retry-After", "3")])


def broken() -> TransportError:
    return TransportError("reset", method="GET", path="/x")


def sender_over(transport: FakeTransport) -> RequestSender:
    return RequestSender(transport, default_timeout=30.0)


async def test_a_refusal_with_retry_after_is_waited_for() -> None:
    transport = FakeTransport(BUSY, BUSY, OK)
    answer = await sender_over(transport).send("POST", "/x", body=b"{}")
    assert answer is OK
    assert transport.sent_at == [0.0, 3.0, 6.0]
    assert [request.timeout for request in transport.requests] == [30.0, 27.0, 24.0]
    assert all(request.body == b"{}" for request in transport.requests)


async def test_a_wait_beyond_the_time_limit_is_not_begun() -> None:
    transport = FakeTransport(text_answer("", status=503, headers=[("retry-after", "30")]))
    with pytest.raises(ServiceUnavailableError) as caught:
        await sender_over(transport).send("GET", "/x")
    assert caught.value.retry_after == 30.0
    assert asyncio.get_running_loop().time() == 0.0


async def test_ten_repeats_are_the_most() -> None:
    transport = FakeTransport(*[text_answer("", status=429, headers=[("retry-after", "1")])] * 11)
    with pytest.raises(TooManyRequestsError):
        await sender_over(transport).send("GET", "/x")
    assert transport.sent_at == [float(second) for second in range(11)]


async def test_a_refused_connection_is_not_tried_again() -> None:
    refused = TransportError("refused", method="GET", path="/x", refused=True)
    transport = FakeTransport(refused)
    with pytest.raises(TransportError) as caught:
        await sender_over(transport).send("GET", "/x")
    assert caught.value is refused
    assert not refused.sent


async def test_a_get_survives_a_broken_connection_and_a_post_does_not() -> None:
    transport = FakeTransport(broken(), OK)
    assert await sender_over(transport).send("GET", "/x") is OK
    assert transport.sent_at == [0.0, 1.0]
    with pytest.raises(TransportError):
        await sender_over(FakeTransport(broken())).send("POST", "/x", body=b"{}")


async def test_a_time_limit_stands() -> None:
    late = RequestTimeoutError("late", method="GET", path="/x")
    transport = FakeTransport(After(5.0, late))
    with pytest.raises(RequestTimeoutError):
        await sender_over(transport).send("GET", "/x", timeout=5.0)
    assert transport.requests[0].timeout == 5.0


async def test_what_a_request_carries() -> None:
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


async def test_cancelling_ends_the_wait() -> None:
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


async def test_a_stream_that_is_refused() -> None:
    transport = FakeTransport(Stream((b"404 page ", b"not found\n"), status=404))
    with pytest.raises(NotFoundError, match="404 page not found"):
        async with sender_over(transport).stream("/x", query={}):
            pass
    assert transport.open_streams == 0


async def test_a_refusal_that_never_ends_is_cut_at_the_time_limit() -> None:
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
