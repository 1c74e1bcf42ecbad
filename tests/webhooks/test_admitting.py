"""Reviews of admission: what functions are given, and what becomes of what they return."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import deltaloop as dl
from deltaloop.errors import InvalidArgumentError, InvalidReviewResultError, InvalidWebhookError
from deltaloop.webhooks import AdmissionWebhook, WebhookSet
from deltaloop.webhooks.admitting import admit
from deltaloop.webhooks.answer import Answer
from deltaloop.webhooks.core.admission_review import MOST_FINDINGS
from deltaloop.webhooks.errors import CachesNotFilledError
from deltaloop.webhooks.request import no_listers
from tests.having import having
from tests.webhooks.kinds import (
    Database,
    Spec,
    check,
    database,
    deployment,
    label,
    no_latest,
    patch_of,
    response,
    review,
    sent,
    set_defaults,
)


def ask(webhook: AdmissionWebhook, obj: dict[str, Any] | None, **fields: Any) -> Answer:
    return admit(webhook, sent(review(obj, **fields)), no_listers)


def test_valid_object_is_allowed() -> None:
    answer = ask(check, database(replicas=3))
    assert answer.outcome == "allowed"
    assert response(answer) == {"uid": "12-34", "allowed": True}


def test_field_errors_become_causes_of_rejection() -> None:
    answer = ask(check, database(replicas=2), userInfo={"username": "mallory"})
    found = response(answer)
    assert (answer.outcome, found["allowed"]) == ("denied", False)
    assert found["status"] == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "mallory may not; spec.replicas: an odd number is needed",
        "reason": "Invalid",
        "code": 422,
        "details": {
            "name": "a",
            "group": "example.com",
            "kind": "Database",
            "causes": [
                {"message": "mallory may not"},
                {"reason": "FieldValueInvalid", "message": "an odd number is needed", "field": "spec.replicas"},
            ],
        },
    }


def test_errors_without_field_return_forbidden() -> None:
    status = response(ask(check, database(replicas=1), userInfo={"username": "mallory"}))["status"]
    assert (status["code"], status["reason"]) == (403, "Forbidden")


def test_many_and_long_field_errors_are_truncated() -> None:
    @dl.validate(Database)
    def finds(_: Database) -> list[dl.FieldError]:
        return [dl.FieldError(f"spec.x[{place}]", "y" * 5000 + "\x1b[31m") for place in range(MOST_FINDINGS + 5)]

    status = response(ask(finds, database()))["status"]
    assert len(status["details"]["causes"]) == MOST_FINDINGS
    assert len(status["message"]) < 10_000
    assert "\x1b" not in json.dumps(status["message"])


def test_an_update_has_the_object_before_warnings_and_notes() -> None:
    found = response(ask(check, database(replicas=1), old=database(replicas=3)))
    assert found == {
        "uid": "12-34",
        "allowed": True,
        "warnings": ["servers go"],
        "auditAnnotations": {"shrinks": "yes"},
    }


def test_malformed_old_object_can_be_repaired() -> None:
    @dl.validate(Database)
    def reads_old(database: Database, request: dl.AdmissionRequest[Database]) -> Iterator[dl.FieldError]:
        if database.spec.replicas > 9:
            yield dl.FieldError("spec.replicas", "9 at most")
        assert request.old is not None

    @dl.mutate(Database)
    def mutates(database: Database, request: dl.AdmissionRequest[Database]) -> None:
        database.spec.owner = "nobody"
        assert request.old is not None

    old = database(replicas="many")
    for webhook in (reads_old, mutates):
        answer = ask(webhook, database(replicas=1), old=old)
        found = response(answer)
        assert (found["allowed"], "patch" in found, answer.outcome) == (True, False, "allowed")
        assert "does not fit at spec.replicas" in found["warnings"][0]
        assert answer.mismatch is not None
        assert (answer.mismatch.key, answer.mismatch.field) == ("shop/a", "spec.replicas")
    assert response(ask(reads_old, database(replicas=10), old=old))["allowed"] is False, "what it found before counts"


def test_malformed_object_decoded_by_function_is_internal_error() -> None:
    @dl.validate(Database)
    def decodes(_: Database) -> None:
        dl.Resource.from_dict({"metadata": {}}).decode(Database)

    assert ask(decodes, database(replicas=1), old=database(replicas=2)).status == 500


class NewSpec(msgspec.Struct):
    owner: str
    replicas: int = 1


@dl.custom_resource(group="example.com", version="v1", kind="Database")
class NewDatabase(msgspec.Struct):
    """The class of a later release: ``owner`` became required."""

    spec: NewSpec
    metadata: dl.ObjectMeta = msgspec.field(default_factory=dl.ObjectMeta)


CALLS: list[object] = []


@dl.validate(NewDatabase, operations=["CREATE", "UPDATE", "DELETE"], name="new.databases.example.com")
def check_new(database: NewDatabase) -> dl.FieldError:
    CALLS.append(database)
    return dl.FieldError("", "never")


@dl.mutate(NewDatabase, failure_policy="Ignore")
def complete_new(database: NewDatabase) -> None:
    CALLS.append(database)


@dl.validate(NewDatabase, subresources=["status"], name="status.databases.example.com")
def check_status(database: NewDatabase) -> None:
    CALLS.append(database)


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
STORED = database(replicas=1)


@pytest.mark.parametrize(
    ("webhook", "obj", "fields"),
    [
        (check_new, None, {"old": STORED}),
        (check_new, {**STORED, "metadata": {"name": "a", "labels": {"a": "b"}}}, {"old": STORED}),
        (complete_new, {**STORED, "metadata": {"name": "a", "labels": {"a": "b"}}}, {"old": STORED}),
        (
            check_new,
            {**STORED, "metadata": {"name": "a", **DELETED}},
            {"old": {**STORED, "metadata": {"name": "a", **DELETED, "finalizers": ["a/b"]}}},
        ),
        (check_new, {**STORED, "spec": {"replicas": 2}}, {"old": STORED}),
        (check_status, {**STORED, "status": {"ready": True}}, {"old": STORED, "subResource": "status"}),
    ],
    ids=["delete", "label", "label, mutating", "finalizer", "another field", "status"],
)
def test_unchanged_mismatch_is_allowed_without_calling_function(
    webhook: AdmissionWebhook, obj: dict[str, Any] | None, fields: dict[str, Any]
) -> None:
    CALLS.clear()
    answer = ask(webhook, obj, **fields)
    found = response(answer)
    assert (found["allowed"], "patch" in found, CALLS) == (True, False, [])
    assert found["warnings"] == [
        f"webhook {webhook.name} did not check this request: the stored Database does not fit at spec.owner"
    ]
    assert answer.mismatch is not None
    assert (answer.mismatch.key, answer.mismatch.field) == ("shop/a", "spec.owner")


@pytest.mark.parametrize(
    ("obj", "old", "field", "reason"),
    [
        (STORED, None, "spec.owner", "FieldValueRequired"),
        ({**STORED, "spec": {"owner": "a", "replicas": "x"}}, STORED, "spec.replicas", "FieldValueTypeInvalid"),
        ({**STORED, "spec": {"replicas": "x"}}, STORED, "spec.replicas", "FieldValueTypeInvalid"),
        (STORED, database(owner="a"), "spec.owner", "FieldValueRequired"),
    ],
)
@pytest.mark.parametrize("webhook", [check_new, complete_new])
def test_new_mismatch_is_rejected(
    webhook: AdmissionWebhook, obj: dict[str, Any], old: dict[str, Any] | None, field: str, reason: str
) -> None:
    status = response(ask(webhook, obj, **({} if old is None else {"old": old})))["status"]
    [cause] = status["details"]["causes"]
    assert (status["code"], cause["field"], cause["reason"]) == (422, field, reason)


def test_invalid_utf8_in_unknown_field_is_denied() -> None:
    body = sent(review(database(replicas=3))).replace(b'"of": "others"', b'"of\xe6": "others"')
    answer = admit(set_defaults, body, no_listers)
    assert (answer.status, answer.outcome, response(answer)["status"]["code"]) == (200, "denied", 422)


def test_deletion_is_validated_with_old_object() -> None:
    found = response(ask(no_latest, None, old=deployment("web:latest")))
    [cause] = found["status"]["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("spec.template.spec.containers[0].image", "FieldValueForbidden")
    assert response(ask(no_latest, None, old=deployment()))["allowed"] is True


def test_deletion_without_old_object_is_rejected() -> None:
    answer = ask(no_latest, deployment(), operation="DELETE", oldObject=None)
    assert (answer.outcome, response(answer)["status"]["code"]) == ("invalid", 400)


def test_connect_request_options_have_no_metadata() -> None:
    seen: list[Any] = []

    @dl.validate("v1/Pod", operations=["CONNECT"], subresources=["exec"])
    def no_shell(options: dl.Resource, request: dl.AdmissionRequest[dl.Resource]) -> dl.FieldError | None:
        seen.append((options["command"], options.name, request.old, request.subresource))
        return dl.FieldError("", "no shells here") if options["command"] == ["sh"] else None

    kind = {"group": "", "version": "v1", "kind": "PodExecOptions"}
    options = {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]}
    found = response(ask(no_shell, options, kind=kind, operation="CONNECT", subResource="exec"))
    assert (found["status"]["code"], seen) == (403, [(["sh"], "a", None, "exec")])


def test_subresource_of_other_kind_is_passed_unchanged() -> None:
    @dl.validate("apps/v1/Deployment", operations=["UPDATE"], subresources=["scale"])
    def not_too_many(scale: dl.Resource) -> dl.FieldError | None:
        return dl.FieldError("spec.replicas", "9 at most") if scale["spec"]["replicas"] > 9 else None

    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 10}}
    assert response(ask(not_too_many, scale, old=scale, subResource="scale"))["allowed"] is False


def test_class_mutation_patches_only_changed_fields() -> None:
    obj = database(replicas=3, unknown={"kept": 1})
    assert patch_of(ask(set_defaults, obj)) == [{"op": "add", "path": "/spec/owner", "value": "nobody"}]
    assert patch_of(ask(set_defaults, database(owner="me"))) == []


def test_field_mutation_may_return_new_fields() -> None:
    wanted = [{"op": "add", "path": "/metadata/labels", "value": {"made-by": "alice"}}]
    assert patch_of(ask(label, deployment())) == wanted


def test_object_not_matching_class_is_rejected_with_path() -> None:
    for webhook in (check, set_defaults):
        status = response(ask(webhook, database(replicas="many")))["status"]
        [cause] = status["details"]["causes"]
        assert (status["code"], cause["field"], cause["reason"]) == (422, "spec.replicas", "FieldValueTypeInvalid")
        assert "many" not in json.dumps(status)


UNCHECKED: Any = dl  # checkers find all of these mistakes, too


def fails(_: Database) -> None:
    raise ValueError("secret-of-the-object")


def gives_text(_: Database) -> Any:
    return "spec.replicas is wrong"


def renames(database: Database) -> Database:
    return Database(spec=Spec(), metadata=dl.ObjectMeta(name="other", namespace=database.metadata.namespace))


def gives_another_class(_: Database) -> Any:
    return Spec()


def makes_no_database(database: Database) -> None:
    database.spec.replicas = "secret-of-the-object"  # type: ignore[assignment]


def reads_undeclared(_: Database, request: dl.AdmissionRequest[Database]) -> None:
    request.lister("v1/Secret")


def annotates_badly(_: Database, request: dl.AdmissionRequest[Database]) -> None:
    request.annotate("no/such key", "value")


@pytest.mark.parametrize(
    ("decorate", "function", "why"),
    [
        (dl.validate, fails, "ValueError"),
        (dl.mutate, fails, "ValueError"),
        (dl.validate, gives_text, "its function must return or yield dl.FieldError(path, message), got str"),
        (dl.validate, annotates_badly, "an audit annotation has a key that the server drops"),
        (dl.validate, reads_undeclared, "its reads do not include v1/Secret. Add the kind to reads=[...]."),
        (dl.mutate, renames, "its function must not change metadata.name"),
        (dl.mutate, gives_another_class, "its function must return Database or None, got Spec"),
        (dl.mutate, makes_no_database, "its function returned an object that does not fit Database at spec.replicas"),
    ],
)
def test_failing_function_leaves_decision_to_failure_policy(decorate: Any, function: Any, why: str) -> None:
    answer = ask(decorate(Database)(function), database(replicas=1))
    assert (answer.status, answer.outcome) == (500, "failed")
    assert answer.error is not None
    status = json.loads(answer.body)
    assert (status["kind"], status["status"], status["reason"]) == ("Status", "Failure", "InternalError")
    assert "secret-of-the-object" not in answer.body.decode()
    assert status["message"].endswith(f" failed: {why}")
    if isinstance(answer.error, InvalidReviewResultError) and function is not annotates_badly:
        line = function.__code__.co_firstlineno
        assert answer.error.where.endswith(f"test_admitting.py:{line} in {function.__name__}"), "not ours: its own"


def test_unfilled_cache_leaves_decision_to_failure_policy() -> None:
    @dl.validate(Database, reads=["v1/Namespace"])
    def reads(_: Database, request: dl.AdmissionRequest[Database]) -> None:
        request.lister("v1/Namespace").find("shop")

    def not_yet(kind: object) -> Any:
        raise CachesNotFilledError(f"the cache of {kind} is not filled yet")

    answer = admit(reads, sent(review(database())), not_yet)
    assert (answer.status, json.loads(answer.body)["reason"]) == (503, "ServiceUnavailable")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"operation": "DELETE", "old": database()}, "operation DELETE"),
        ({"subResource": "status"}, "subresource 'status'"),
        ({"kind": {"group": "example.com", "version": "v2", "kind": "Database"}}, "a example.com/v2/Database"),
        ({"kind": {"group": "", "version": "v1", "kind": "Pod"}}, "a v1/Pod"),
        ({"object": None}, "must contain an object"),
        ({"operation": "CREATE", "object": None, "old": database()}, "must contain an object"),
    ],
)
def test_request_for_other_resource_is_rejected(fields: dict[str, Any], what: str) -> None:
    answer = ask(check, database(), **fields)
    status = response(answer)["status"]
    assert (answer.outcome, status["code"]) == ("invalid", 400)
    assert what in status["message"]


@pytest.mark.parametrize(
    ("body", "has_uid"),
    [
        (b"", False),
        (b"no json", False),
        (b"[]", False),
        (b"[" * 100_000, False),
        (b'"\xff"', False),
        (sent({}), False),
        (sent({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "1"}}), False),
        (sent({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}), False),
        (sent(review(None, operation="EAT")), True),
        (sent(review(None, userInfo=7)), True),
        (sent(review(None, object=None)), True),
    ],
)
def test_invalid_review_is_rejected_with_status(body: bytes, has_uid: bool) -> None:
    answer = admit(check, body, no_listers)
    assert answer.outcome == "invalid"
    if has_uid:
        assert response(answer)["status"]["code"] == 400
    else:
        status = json.loads(answer.body)
        assert (answer.status, status["kind"], status["reason"]) == (400, "Status", "BadRequest")


def test_a_declared_webhook_is_called_like_its_function() -> None:
    request = dl.webhooks.admission_request("UPDATE", old=Database(spec=Spec(replicas=3)))
    assert [*check(Database(spec=Spec(replicas=2)), request)] == [
        dl.FieldError("spec.replicas", "an odd number is needed")
    ]
    assert request.warnings == ("servers go",)


def test_manually_created_request_has_caches() -> None:
    request: dl.AdmissionRequest[Database] = dl.webhooks.admission_request(
        user="alice",
        groups=["admins"],
        reads={
            Database: [Database(Spec(replicas=3), dl.ObjectMeta(name="a", namespace="shop"))],
            "v1/Pod": [{"metadata": {"name": "p"}}],
        },
    )
    found = request.lister(Database).find("shop/a")
    assert found is not None
    assert (found.spec.replicas, request.user.groups) == (3, ("admins",))
    assert [each.name for each in request.lister(dl.kinds.POD).list()] == ["p"]
    with pytest.raises(InvalidReviewResultError) as caught:
        request.lister("apps/v1/Deployment")
    assert "apps/v1/Deployment" in caught.value.problem


def first(_: Database) -> None: ...


NAMELESS: Callable[[Database], None] = lambda _: None


async def waits(_: Database) -> None: ...


async def yields(_: Database) -> Any:
    yield


def takes_nothing() -> None: ...


def takes_three(one: Any, two: Any, three: Any) -> None: ...


def has_a_default(_: Database, strict: bool = True) -> Iterator[dl.FieldError]:
    if strict is not True:
        yield dl.FieldError("", "the default is its own affair")


@pytest.mark.parametrize(
    ("decorate", "option"),
    [
        (lambda: UNCHECKED.validate("example.com/v1/Widget")(first), "kind"),
        (lambda: UNCHECKED.validate(Spec)(first), "kind"),
        (lambda: UNCHECKED.validate(first), "kind"),
        (lambda: UNCHECKED.mutate(first), "kind"),
        (lambda: UNCHECKED.convert(first, "v1", "v2"), "kind"),
        (lambda: UNCHECKED.validate(Database)(NAMELESS), "name"),
        (lambda: UNCHECKED.validate(Database)(waits), "function"),
        (lambda: UNCHECKED.validate(Database)(yields), "function"),
        (lambda: UNCHECKED.validate(Database)(takes_nothing), "function"),
        (lambda: UNCHECKED.validate(Database)(takes_three), "function"),
        (lambda: UNCHECKED.validate(Database, name="short")(first), "name"),
        (lambda: UNCHECKED.validate(Database, operations=["PATCH"])(first), "operations"),
        (lambda: UNCHECKED.mutate(Database, operations=["DELETE"])(first), "operations"),
        (lambda: UNCHECKED.validate(Database, operations="CREATE")(first), "operations"),
        (lambda: UNCHECKED.validate(Database, timeout=31)(first), "timeout"),
        (lambda: UNCHECKED.validate(Database, timeout=0.5)(first), "timeout"),
        (lambda: UNCHECKED.validate(Database, failure_policy="fail")(first), "failure_policy"),
        (lambda: UNCHECKED.validate(Database, subresources=["scale"])(first), "subresources"),
        (lambda: UNCHECKED.validate(Database, wait=3)(first), "wait"),
        (lambda: UNCHECKED.convert(Database, Spec)(first), "kind"),
        (lambda: UNCHECKED.convert("apps/v1/Deployment", "v1")(first), "convert"),
    ],
)
def test_invalid_webhook_is_rejected_on_declaration(decorate: Callable[[], object], option: str) -> None:
    with pytest.raises(InvalidWebhookError, check=having(argument=option)):
        decorate()


def test_second_parameter_with_default_is_allowed() -> None:
    assert response(ask(dl.validate(Database)(has_a_default), database()))["allowed"] is True


def test_duplicate_webhook_name_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="name")):
        WebhookSet([check, dl.validate(Database, name=check.name)(first)])
