"""What the API server is asked: what this account may do, whose a token is, and what its bearer may."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.status import ForbiddenError
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import PreflightError, RequestTimeoutError
from deltaloop.runtime.core.access import AccessRule, rules_for
from deltaloop.runtime.program.access import check_access
from deltaloop.runtime.program.token_reviews import review_tokens
from tests.client.fake_transport import After, FakeTransport, json_answer
from tests.runtime.worlds import now


def over(*answers: Any) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


def review(**status: Any) -> Any:
    return json_answer({"kind": "Review", "metadata": {}, **({"status": status} if status else {})}, status=201)


def refusal(code: int, reason: str) -> Any:
    return json_answer(
        {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "details": {"name": "x"}}, status=code
    )


def bodies(transport: FakeTransport) -> list[dict[str, Any]]:
    return [json.loads(request.body or b"") for request in transport.requests]


# -- what this account may do


async def test_rules_are_reviewed_once_with_four_concurrent_requests() -> None:
    rules = [AccessRule("", f"r{number}", "get") for number in range(25)]
    client, transport = over(*[After(1.0, review(allowed=True))] * 25)
    await check_access(client, [*rules, *rules])
    assert [transport.sent_at.count(float(at)) for at in range(8)] == [1, 4, 4, 4, 4, 4, 4, 0]
    asked = {body["spec"]["resourceAttributes"]["resource"] for body in bodies(transport)}
    assert asked == {rule.resource for rule in rules}
    assert {(request.method, request.path) for request in transport.requests} == {
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    }


async def test_preflight_error_contains_rejected_rules_only() -> None:
    rules = rules_for(kinds.SECRET, ("get", "list", "watch"), namespace=None)
    client, _ = over(review(allowed=True), review(allowed=False), review())
    with pytest.raises(PreflightError) as caught:
        await check_access(client, rules)
    assert caught.value.missing == tuple(rules[1:])


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (403, "Forbidden"), (405, "MethodNotAllowed")])
async def test_server_without_review_api_gets_one_request(
    code: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    rules = [AccessRule("", f"r{number}", "get") for number in range(25)]
    client, transport = over(After(1.0, refusal(code, reason)))
    await check_access(client, rules)
    assert len(transport.requests) == 1
    [record] = [record for record in caplog.records if record.name == "deltaloop.runtime"]
    assert record.levelno == logging.WARNING
    assert (vars(record)["code"], vars(record)["reason"]) == (code, reason)


async def test_rejection_counts_despite_later_failure() -> None:
    client, _ = over(review(allowed=False), refusal(404, "NotFound"))
    with pytest.raises(PreflightError):
        await check_access(client, [AccessRule("", "one", "get"), AccessRule("", "two", "get")])


async def test_unreachable_server_raises_error() -> None:
    error = RequestTimeoutError("no answer", method="POST", path="/")
    client, _ = over(error)
    with pytest.raises(RequestTimeoutError):
        await check_access(client, [AccessRule("", "one", "get")])
    await check_access(client, [])


async def test_failed_review_waits_for_concurrent_reviews() -> None:
    error = RequestTimeoutError("no answer", method="POST", path="/")
    client, _ = over(review(allowed=True), error, After(5.0, review(allowed=True)))
    with pytest.raises(RequestTimeoutError):
        await check_access(client, [AccessRule("", each, "get") for each in ("one", "two", "three")])
    assert now() == pytest.approx(5.0)


# -- whose a token is

USER: dict[str, Any] = {"username": "bob", "uid": "u", "groups": ["a", "b"], "extra": {"scope": ["x"]}}


async def test_token_review_is_followed_by_access_review_of_user() -> None:
    client, transport = over(review(authenticated=True, user=USER), review(allowed=True))
    assert await review_tokens(client)("planted", "/metrics") is True
    token, access = bodies(transport)
    assert [request.path for request in transport.requests] == [
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    ]
    assert token == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "metadata": {},
        "spec": {"token": "planted"},
    }
    assert access == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": "bob",
            "uid": "u",
            "groups": ["a", "b"],
            "extra": {"scope": ["x"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }


async def test_user_with_missing_fields_is_reviewed() -> None:
    client, transport = over(
        review(authenticated=True), review(allowed=True), review(authenticated=True, user={"username": "bob"}), review()
    )
    may_get = review_tokens(client)
    assert await may_get("one", "/") is True
    assert await may_get("two", "/") is False
    empty: dict[str, Any] = {
        "uid": "",
        "groups": [],
        "extra": {},
        "nonResourceAttributes": {"path": "/", "verb": "get"},
    }
    assert [body["spec"] for body in bodies(transport)][1::2] == [{"user": "", **empty}, {"user": "bob", **empty}]


@pytest.mark.parametrize("status", [{}, {"authenticated": False, "user": USER}, {"user": USER}])
async def test_unknown_token_is_rejected(status: dict[str, Any]) -> None:
    client, transport = over(review(**status))
    assert await review_tokens(client)("planted", "/metrics") is False
    assert len(transport.requests) == 1


async def test_review_result_is_cached_ten_seconds_per_token_and_path() -> None:
    yes, no = [review(authenticated=True), review(allowed=True)], [review()]
    client, transport = over(*yes, *no, *no, *no)
    may_get = review_tokens(client)
    assert await may_get("one", "/metrics") is True
    assert await may_get("one", "/healthz") is False
    assert await may_get("two", "/metrics") is False
    assert len(transport.requests) == 4
    await asyncio.sleep(9.9)
    assert await may_get("one", "/metrics") is True
    assert await may_get("two", "/metrics") is False
    assert len(transport.requests) == 4
    await asyncio.sleep(0.2)
    assert await may_get("one", "/metrics") is False
    assert len(transport.requests) == 5
    assert now() == pytest.approx(10.1)


async def test_failed_review_is_not_cached() -> None:
    client, _ = over(refusal(403, "Forbidden"), review(authenticated=True), review(allowed=True))
    may_get = review_tokens(client)
    with pytest.raises(ForbiddenError):
        await may_get("one", "/metrics")
    assert await may_get("one", "/metrics") is True
