"""Answers of webhooks: what is read of them is bounded."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from deltaloop.apiserver.core.admission.webhooks.plugins import InvalidResponseError, patch_of, read_response
from deltaloop.apiserver.core.json_patch import MAX_OPERATIONS
from deltaloop.apiserver.core.webhook_calls import Called, FailedCallError, WebhookCall, endpoint_of, read_answer
from deltaloop.schemas.nesting import MAX_PARTS

CALL = WebhookCall(
    endpoint=endpoint_of({"url": "https://localhost/"}), seconds=1, kind="K", api_version="g/v1", request=b"{}"
)


def answered(body: bytes) -> object:
    return read_answer(CALL, Called(uid="u", status=200, content_type="application/json", body=body))


def nested(levels: int) -> str:
    return '{"a":' * levels + "0" + "}" * levels


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"a: b\n" * 60_000, "at most 262144 bytes of YAML, got 300000"),
        (b'{"a":[' + b"[]," * MAX_PARTS + b"0]}", "more than 150000 objects and lists"),
        (nested(200).encode(), "exceeded max depth"),
        (nested(2_000).encode(), "json parse error"),
        (b"- " * 400 + b"a", "exceeded max depth"),
    ],
    ids=["YAML", "parts", "depth", "great depth", "depth of YAML"],
)
def test_response_beyond_the_bounds_is_a_failed_call(body: bytes, words: str) -> None:
    with pytest.raises(FailedCallError, match=words):
        answered(body)


def test_small_yaml_response_and_large_text_are_read() -> None:
    assert answered(b"a: b\n") == {"a": "b"}
    assert answered(json.dumps({"a": "[" * 2 * MAX_PARTS}).encode()) == {"a": "[" * 2 * MAX_PARTS}


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (
            json.dumps([{"op": "add", "path": "/a", "value": 1}] * (MAX_OPERATIONS + 1)),
            "must have at most 10000 operations",
        ),
        (f'[{{"op":"add","path":"/a","value":{nested(200)}}}]', "max depth"),
    ],
    ids=["operations", "depth"],
)
def test_patch_beyond_the_bounds_is_a_failed_call(patch: str, words: str) -> None:
    review: dict[str, Any] = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "u",
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(patch.encode()).decode(),
        },
    }
    response = read_response(review, version="v1", uid="u", mutating=True)
    with pytest.raises(InvalidResponseError, match=words):
        patch_of(response)
