"""Reviews of conversion: objects go by the hub, keep what they are, and all fail if one does."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

import deltaloop as dl
from deltaloop.errors import InvalidArgumentError, InvalidReviewResultError
from deltaloop.webhooks import KindConversion, WebhookSet
from deltaloop.webhooks.converting import answer_conversion
from tests.having import having
from tests.webhooks.kinds import ALL, Database, OldDatabase, Spec, conversion, database, response, sent, to_new, to_old

TYPED = KindConversion([to_new, to_old])


@dl.convert(Database, "v1beta1", "v1")
def beta_up(obj: dict[str, Any]) -> None:
    obj["spec"]["replicas"] = obj["spec"].pop("size", 1)


@dl.convert(Database, "v1", "v1beta1")
def beta_down(obj: dict[str, Any]) -> None:
    obj["spec"]["size"] = obj["spec"].pop("replicas", 1)


@dl.convert(Database, "v1alpha1", "v1")
def alpha_up(obj: dict[str, Any]) -> dict[str, Any]:
    notes = obj["metadata"].get("annotations", {})
    image = notes.pop("image", None)
    spec = {"replicas": obj["size"]} | ({} if image is None else {"image": image})
    return {"metadata": {"annotations": notes}, "spec": spec}


@dl.convert(Database, "v1", "v1alpha1")
def alpha_down(obj: dict[str, Any]) -> dict[str, Any]:
    image = obj["spec"].get("image")
    notes = obj["metadata"].get("annotations", {}) | ({} if image is None else {"image": image})
    return {"metadata": {"annotations": notes, "name": "other"}, "size": obj["spec"].get("replicas", 1)}


FIELDS = KindConversion([beta_up, beta_down, alpha_up, alpha_down])


def converted(kind: KindConversion, version: str, *objects: dict[str, Any]) -> list[dict[str, Any]]:
    found = response(answer_conversion(kind, sent(conversion(f"example.com/{version}", *objects))))
    assert found["result"] == {"status": "Success"}, found
    return list(found["convertedObjects"])


def test_class_conversion_keeps_metadata() -> None:
    old = {**database(), "apiVersion": "example.com/v1beta1", "spec": {"size": 3, "version": "17"}}
    [new] = converted(TYPED, "v1", old)
    assert new == database(replicas=3, image="postgres:17")
    assert converted(TYPED, "v1beta1", new) == [old]


def test_objects_of_several_versions_keep_their_order() -> None:
    old = {**database(), "apiVersion": "example.com/v1beta1", "spec": {"size": 3}}
    assert [each["spec"] for each in converted(FIELDS, "v1", old, database(replicas=5))] == [
        {"replicas": 3},
        {"replicas": 5},
    ]
    assert converted(FIELDS, "v1") == []


def test_conversion_between_spokes_uses_hub() -> None:
    beta = {**database(), "apiVersion": "example.com/v1beta1", "spec": {"size": 3}}
    [alpha] = converted(FIELDS, "v1alpha1", beta)
    metadata = database()["metadata"]
    assert alpha == {"apiVersion": "example.com/v1alpha1", "kind": "Database", "metadata": metadata, "size": 3}


def test_annotations_preserve_fields_missing_in_version() -> None:
    new = database(replicas=3, image="postgres:17")
    [alpha] = converted(FIELDS, "v1alpha1", new)
    assert alpha["metadata"]["annotations"] == {"of": "others", "image": "postgres:17"}
    assert alpha["metadata"]["name"] == "a"
    assert converted(FIELDS, "v1", alpha) == [new]


def test_conversion_does_not_change_argument() -> None:
    new = database(replicas=3)
    before = copy.deepcopy(new)
    assert FIELDS.convert(new, "v1alpha1")["size"] == 3
    assert new == before


@pytest.mark.parametrize(
    ("kind", "version", "obj", "why", "outcome"),
    [
        (FIELDS, "example.com/v9", database(), "got 'v9'", "invalid"),
        (FIELDS, "other.com/v1", database(), "versions of example.com", "invalid"),
        (FIELDS, "example.com/v1", {**database(), "kind": "Backup"}, "converts only databases.example.com", "invalid"),
        (FIELDS, "example.com/v1", {}, "converts only databases.example.com", "invalid"),
        (FIELDS, "example.com/v1beta1", {**database(), "spec": None}, "failed: AttributeError", "failed"),
        (TYPED, "example.com/v1beta1", database(replicas="three"), "does not fit Database", "invalid"),
        (TYPED, "example.com/v1beta1", {**database(), "metadata": None}, "no metadata", "invalid"),
    ],
)
def test_one_failed_object_fails_the_review(
    kind: KindConversion, version: str, obj: dict[str, Any], why: str, outcome: str
) -> None:
    answer = answer_conversion(kind, sent(conversion(version, database(replicas=1), obj)))
    found = response(answer)
    assert (found["result"]["status"], found["convertedObjects"], answer.outcome) == ("Failure", [], outcome)
    assert why in found["result"]["message"]


class RequiredSpec(msgspec.Struct):
    size: int
    version: str


@dl.custom_resource(group="example.com", version="v1beta1", kind="Database")
class RequiredDatabase(msgspec.Struct):
    spec: RequiredSpec
    metadata: dl.ObjectMeta = msgspec.field(default_factory=dl.ObjectMeta)


@dl.convert(RequiredDatabase, Database)
def from_required(old: RequiredDatabase) -> Database:
    return Database(spec=Spec(replicas=old.spec.size, image=f"postgres:{old.spec.version}"))


STRICT = KindConversion([from_required, to_old])


def old_database(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "example.com/v1beta1", "kind": "Database", "metadata": metadata, "spec": spec}


def test_an_absent_required_field_does_not_fail_a_list() -> None:
    objects = [old_database(f"a{number}", size=number, version="18") for number in range(7)]
    absent = [old_database("b", version="18"), old_database("c", size=2)]
    body = sent(conversion("example.com/v1", *objects, *absent))
    answer = answer_conversion(STRICT, body)
    found = response(answer)
    assert (found["result"], answer.outcome) == ({"status": "Success"}, "converted")
    made = {each["metadata"]["name"]: each["spec"] for each in found["convertedObjects"]}
    assert (made["a6"], made["b"]["replicas"]) == ({"replicas": 6, "image": "postgres:18"}, 0)
    assert made["c"] == {"replicas": 2, "image": "postgres:"}
    assert answer.mismatch == ("shop/b", "spec.size", "the required field is missing", 2)


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (old_database("bad", size="secret", version="18"), "spec.size"),
        (old_database("bad", size="secret"), "spec.size"),
        ({**old_database("bad"), "spec": "secret"}, "spec"),
    ],
)
def test_failed_object_is_reported_with_field(bad: dict[str, Any], field: str) -> None:
    good = [old_database(f"a{number}", size=1, version="18") for number in range(7)]
    answer = answer_conversion(STRICT, sent(conversion("example.com/v1", *good, bad)))
    found = response(answer)
    assert found["result"]["status"] == "Failure"
    assert "databases.example.com shop/bad" in found["result"]["message"]
    assert f" at {field}: " in found["result"]["message"]
    assert "secret" not in found["result"]["message"]
    assert answer.mismatch is not None
    assert (answer.mismatch.key, answer.mismatch.field, answer.outcome) == ("shop/bad", field, "invalid")


def test_object_with_failing_function_is_reported() -> None:
    answer = answer_conversion(FIELDS, sent(conversion("example.com/v1beta1", {**database(replicas=1), "spec": None})))
    assert "databases.example.com shop/a to v1beta1 failed: AttributeError" in response(answer)["result"]["message"]
    assert answer.key == "shop/a"


@pytest.mark.parametrize(
    ("body", "has_uid"),
    [
        (b"{", False),
        (sent({"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "ConversionReview"}), False),
        (sent(conversion("example.com/v1", uid="")), False),
        (sent(conversion("example.com/v1", objects=7)), True),
        (sent(conversion("example.com/v1", objects=[7])), True),
    ],
)
def test_invalid_review_is_rejected_with_status(body: bytes, has_uid: bool) -> None:
    answer = answer_conversion(FIELDS, body)
    assert answer.outcome == "invalid"
    if has_uid:
        assert response(answer)["result"]["status"] == "Failure"
    else:
        assert answer.status == 400


def test_one_way_conversion_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(webhook="databases.example.com")):
        WebhookSet([to_new])


def test_class_version_must_be_a_converted_version() -> None:
    def same(_: dict[str, Any]) -> None: ...

    ways = [dl.convert(Database, "v1beta1", "v2")(same), dl.convert(Database, "v2", "v1beta1")(same)]
    with pytest.raises(InvalidArgumentError, check=having(argument="v1")):
        WebhookSet(ways)


def test_wrong_return_type_is_reported_with_function_location() -> None:
    @dl.convert(Database, OldDatabase)
    def gives_the_same(new: Database) -> OldDatabase:
        return new  # type: ignore[return-value]

    kind = KindConversion([gives_the_same, to_new])
    answer = answer_conversion(kind, sent(conversion("example.com/v1beta1", database(replicas=1))))
    assert "failed: gives_the_same must return a OldDatabase" in response(answer)["result"]["message"]
    assert isinstance(answer.error, InvalidReviewResultError)
    assert "in test_wrong_return_type_is_reported_with_function_location" in answer.error.where


def test_webhook_set_routes_by_path() -> None:
    webhooks = WebhookSet(ALL)
    assert [*webhooks.by_path] == [
        "/validate/check.databases.example.com",
        "/mutate/set-defaults.databases.example.com",
        "/validate/no-latest.deployments.apps",
        "/mutate/label.deployments.example.com",
        "/convert/databases.example.com",
    ]
    body = sent(conversion("example.com/v1beta1", database(replicas=3)))
    [old] = response(webhooks.answer("/convert/databases.example.com", body))["convertedObjects"]
    assert old["spec"] == {"size": 3, "version": "18"}
    assert webhooks.name_at("/convert/databases.example.com") == "convert.databases.example.com"
