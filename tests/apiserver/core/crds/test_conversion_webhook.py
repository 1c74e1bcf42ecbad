"""What a conversion webhook is asked and may answer; the words are in ``tests/conformance/test_conversion.py``."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from deltaloop.apiserver.core.codec import ConversionError
from deltaloop.apiserver.core.crds.conversion_webhook import ConversionWebhook
from deltaloop.apiserver.core.external_answers import ExternalAnswers, QuestionError
from deltaloop.apiserver.core.webhook_calls import Called, WebhookCalls, endpoint_of
from deltaloop.schemas.schema_compiler import schema_from_json

V1, V2 = "example.com/v1", "example.com/v2"
Fields = dict[str, object]


def schema_of(**fields: Any) -> bytes:
    return msgspec.json.encode({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})


@pytest.fixture
def webhook() -> ConversionWebhook:
    one = schema_of(size={"type": "integer", "default": 1})
    two = schema_of(length={"type": "string"})
    return ConversionWebhook(
        kind="Foo",
        endpoint=endpoint_of({"url": "https://localhost/c"}),
        review_version="v1",
        schemas={V1: schema_from_json(one), V2: schema_from_json(two)},
        stored=V1,
        oldest=V1,
        definition="1",
    )


def foo(api_version: str, name: str = "a", **spec: object) -> Fields:
    metadata = {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "7"}
    return {"kind": "Foo", "apiVersion": api_version, "metadata": metadata, "spec": spec}


def answer(*objects: object, uid: str = "1", **fields: object) -> Called:
    response = {"uid": uid, "result": {"status": "Success"}, "convertedObjects": objects}
    review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
    return Called(uid="1", status=200, body=msgspec.json.encode({**review, **fields}))


def test_stored_object_gets_defaults_of_its_own_version(webhook: ConversionWebhook) -> None:
    stored: Fields = {"metadata": {"name": "a"}, "spec": {"unknown": 1}}
    assert webhook.complete(dict(stored)) == {"kind": "Foo", "apiVersion": V1, **stored, "spec": {"size": 1}}
    older = webhook.complete({"apiVersion": V2, "metadata": {"name": "a"}, "spec": {"unknown": 1}})
    assert (older["apiVersion"], older["spec"]) == (V2, {})


def test_review_contains_objects_without_resource_versions(webhook: ConversionWebhook) -> None:
    call = webhook.review([foo(V1, size=3)], V2)
    review = json.loads(call.body("1"))
    assert (review["kind"], review["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert (review["request"]["uid"], review["request"]["desiredAPIVersion"]) == ("1", V2)
    (obj,) = review["request"]["objects"]
    assert obj == {**foo(V1, size=3), "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}
    assert call.seconds == 30


@pytest.mark.parametrize(("source", "wanted", "word"), [(V1, "example.com/v9", "to"), ("example.com/v9", V1, "from")])
def test_conversion_of_an_unknown_version_is_an_error(
    webhook: ConversionWebhook, source: str, wanted: str, word: str
) -> None:
    with pytest.raises(
        ConversionError, match=f"^request to convert CR {word} an invalid group/version: example.com/v9$"
    ):
        webhook.review([foo(source)], wanted)


def test_converted_objects_are_validated_individually(webhook: ConversionWebhook) -> None:
    objects = [foo(V1, "a", size=1), foo(V1, "b", size=2)]
    call = webhook.review(objects, V2)
    good, bad = foo(V2, "a", length="1", unknown=1), foo(V2, "other")
    first, second = webhook.answered(objects, V2, call, answer(good, bad))
    assert first == foo(V2, "a", length="1")
    assert isinstance(second, ConversionError)


def test_conversion_can_change_only_labels_and_annotations_of_metadata(webhook: ConversionWebhook) -> None:
    before = foo(V1)
    before["metadata"] = {**foo(V1)["metadata"], "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x/y"]}  # type: ignore[dict-item]
    after = foo(V2)
    after["metadata"] = {"name": "a", "namespace": "ns", "uid": "u", "annotations": {"e": "f"}, "generation": 9}
    (found,) = webhook.answered([before], V2, webhook.review([before], V2), answer(after))
    assert isinstance(found, dict)
    unlabelled = {name: value for name, value in before["metadata"].items() if name != "labels"}  # type: ignore[attr-defined]
    assert found["metadata"] == {**unlabelled, "annotations": {"e": "f"}}


def test_write_requests_one_conversion_per_object(webhook: ConversionWebhook) -> None:
    answers, obj = ExternalAnswers(), foo(V1, size=3)
    with pytest.raises(QuestionError) as asked:
        webhook.ask(answers, obj, V2)
    question = asked.value.question
    assert isinstance(question, WebhookCalls)
    answers.tell(question, (answer(foo(V2, length="3")),))
    assert webhook.ask(answers, foo(V1, size=3), V2) == foo(V2, length="3")
    with pytest.raises(QuestionError):
        webhook.ask(answers, foo(V1, size=4), V2)
    assert webhook.ask(answers, obj, V1) is obj


def test_conversion_errors_do_not_contain_object_values(webhook: ConversionWebhook) -> None:
    secret = foo(V1, size=3, password="hunter2")
    for called in (answer(), answer("x"), answer({"spec": {"password": "hunter2"}}), answer(foo(V2, "b", p="hunter2"))):
        call = webhook.review([secret], V2)
        try:
            (found,) = webhook.answered([secret], V2, call, called)
        except ConversionError as error:
            found = error
        assert isinstance(found, ConversionError)
        assert "hunter2" not in str(found)
    assert "hunter2" not in repr(webhook.review([secret], V2))
