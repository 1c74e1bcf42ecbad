"""Bugs that webhooks could have, each seeded as an edit: what the tests of this folder check finds every one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from tests.webhooks.kinds import Database, check, database, review, sent, set_defaults, to_new, to_old

import deltaloop as dl
from deltaloop.api.status import Status
from deltaloop.apiserver.core.json_patch import apply_operations
from deltaloop.webhooks import WebhookAddress, admitting, converting
from deltaloop.webhooks.core import admission_review, conversion_review, object_patch, registrations, time_limit
from deltaloop.webhooks.request import no_listers
from lab.mutants.edited import edited_module

Names = dict[str, Any]


def patches(names: Names) -> None:
    pairs: list[tuple[Any, Any]] = [
        ({"a": [1, 2, 3, 4]}, {"a": [1, 4]}),
        ({"a": [1, 4]}, {"a": [1, 2, 3, 4]}),
        ({"a": [{"n": 1}, 2]}, {"a": [{"n": 2}, 2]}),
        ({"a": {}}, {"a": {"x/y": {"~0": 1}}}),
        ({"a": {"x/y": 1, "~1": 1}}, {"a": {"x/y": 2, "~1": 2}}),
        ({"a": 1}, {"a": True}),
        ({"a": 1, "b": None}, {"b": 0}),
    ]
    for before, after in pairs:
        operations = names["patch_between"](before, after)
        assert json.dumps(apply_operations(copy.deepcopy(before), operations), sort_keys=True) == json.dumps(
            after, sort_keys=True
        )


def answers(names: Names) -> None:
    no = json.loads(names["admission_response"]("1", refused=Status(code=403, message="m"), warnings=["w"]))
    assert no["apiVersion"] == "admission.k8s.io/v1"
    assert no["response"]["uid"] == "1"
    assert no["response"]["allowed"] is False
    assert no["response"]["status"]["code"] == 403
    assert no["response"]["warnings"] == ["w"]
    yes = json.loads(names["admission_response"]("1", patch=[{"op": "remove", "path": "/a"}]))["response"]
    assert (yes["allowed"], yes["patchType"]) == (True, "JSONPatch")
    with pytest.raises(Exception, match="admissionReviewVersions"):
        names["read_admission_review"](sent({**review(database()), "apiVersion": "admission.k8s.io/v1beta1"}))


def conversions(names: Names) -> None:
    response = json.loads(names["unconverted_response"]("1", "why"))["response"]
    assert (response["uid"], response["result"]) == ("1", {"status": "Failure", "message": "why"})
    assert json.loads(names["converted_response"]("1", [{}]))["response"]["result"] == {"status": "Success"}


def refusals(names: Names) -> None:
    made = names["refusal"](
        [dl.FieldError("spec.a", "m"), dl.FieldError("", "n")], group="example.com", kind="Database", name="a"
    )
    assert (made.code, made.reason, [cause.field for cause in made.details.causes]) == (422, "Invalid", ["spec.a", ""])
    assert names["refusal"]([dl.FieldError("", "n")], group="", kind="Pod", name="").code == 403


def ways(names: Names) -> None:
    made = names["Hub"]((*way.split(">"), way) for way in ("a>h", "h>a", "b>h", "h>b"))
    assert (made.version, made.way("a", "b"), made.way("a", "a")) == ("h", ("a>h", "h>b"), ())
    with pytest.raises(names["HubError"]):
        names["Hub"]([("a", "h", ""), ("h", "a", ""), ("b", "h", "")])


def limits(names: Names) -> None:
    assert 0 < names["time_limit"]("5s", 10.0) < 5
    assert 0 < names["time_limit"]("", 10.0) < 10
    assert 0 < names["time_limit"]("30s", 10.0) < 10


def documents(names: Names) -> None:
    @dl.validate("v1/Pod", name="a.b.c", operations=["CREATE"], failure_policy="Ignore", timeout=3)
    def hook(_: dl.Resource) -> None: ...

    address = WebhookAddress(namespace="shop", service="s")
    [made] = names["configuration"]("Validating", [hook], address, name="n", own_namespace="shop")["webhooks"]
    [expression] = made["namespaceSelector"]["matchExpressions"]
    assert (expression["operator"], expression["values"]) == ("NotIn", ["shop"])
    assert (made["failurePolicy"], made["sideEffects"], made["timeoutSeconds"]) == ("Ignore", "None", 3)


def admissions(names: Names) -> None:
    @dl.validate(Database)
    def fails(_: Database) -> None:
        raise ValueError("hidden")

    body = sent(review(database(replicas=3, unknown=1)))
    failed = names["admit"](fails, body, no_listers)
    assert (failed.status, b"hidden" in failed.body) == (500, False)
    assert json.loads(names["admit"](check, body, no_listers).body)["response"]["allowed"] is True
    even = names["admit"](check, sent(review(database(replicas=2))), no_listers)
    assert json.loads(even.body)["response"]["allowed"] is False
    assert b"JSONPatch" in names["admit"](set_defaults, body, no_listers).body
    other = names["admit"](check, sent(review(database(), subResource="status")), no_listers)
    assert json.loads(other.body)["response"]["allowed"] is False

    @dl.mutate(Database)
    def renames(database: Database) -> None:
        database.metadata.name = "other"

    assert names["admit"](renames, body, no_listers).status == 500


def objects(names: Names) -> None:
    kind = names["KindConversion"]([to_new, to_old])
    obj = database(replicas=3, image="postgres:17")
    old = kind.convert(obj, "v1beta1")
    assert (old["apiVersion"], old["metadata"], old["spec"]["size"]) == (
        "example.com/v1beta1",
        obj["metadata"],
        3,
    )
    assert obj == database(replicas=3, image="postgres:17")
    with pytest.raises(Exception, match="only"):
        kind.convert({**obj, "kind": "Other"}, "v1beta1")

    @dl.convert(Database, "v1", "v1beta1")
    def renames(found: dict[str, Any]) -> None:
        found["metadata"] = {"name": "other", "labels": {"a": "b"}}
        found["spec"].clear()

    back = dl.convert(Database, "v1beta1", "v1")(renames.function)
    made = names["KindConversion"]([renames, back]).convert(obj, "v1beta1")
    assert made["metadata"] == {"name": "a", "namespace": "shop", "labels": {"a": "b"}}
    assert obj == database(replicas=3, image="postgres:17")


FAILS = 'return failed(500, "InternalError"'
BUGS: list[tuple[ModuleType, str, str, Callable[[Names], None]]] = [
    (object_patch, "range(len(was) - end - 1, begin + both - 1, -1)", "range(begin + both, len(was) - end)", patches),
    (object_patch, "range(begin + both, len(now) - end)", "range(begin + both, len(now) - end - 1)", patches),
    (object_patch, '.replace("~", "~0").replace("/", "~1")', '.replace("/", "~1").replace("~", "~0")', patches),
    (object_patch, "type(was) is type(now) and is_same_json(was, now) is True", "was == now", patches),
    (object_patch, 'yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}', "pass", patches),
    (admission_review, '{"uid": uid, "allowed": refused is None}', '{"uid": "", "allowed": refused is None}', answers),
    (admission_review, '"allowed": refused is None', '"allowed": True', answers),
    (admission_review, 'response["patchType"] = "JSONPatch"', "pass", answers),
    (admission_review, "if (review.api_version, review.kind) != (API_VERSION, KIND):", "if False:", answers),
    (conversion_review, '"status": "Failure"', '"status": "Success"', conversions),
    (admission_review, "code=422 if is_invalid else 403", "code=422", refusals),
    (admission_review, "any(each.path for each in findings)", "all(each.path for each in findings)", refusals),
    (conversion_review, "if (target, source) not in self._functions:", "if False:", ways),
    (
        conversion_review,
        "(self._functions[source, self.version], self._functions[self.version, target])",
        "(self._functions[self.version, target],)",
        ways,
    ),
    (time_limit, "waits - min(_MOST, waits * _SHARE)", "waits + min(_MOST, waits * _SHARE)", limits),
    (time_limit, "min(declared, float(found[1]))", "max(declared, float(found[1]))", limits),
    (registrations, '"operator": "NotIn"', '"operator": "In"', documents),
    (registrations, '"sideEffects": "None"', '"sideEffects": "Some"', documents),
    (registrations, '"timeoutSeconds": webhook.timeout', '"timeoutSeconds": 10', documents),
    (admitting, FAILS, f"return _answer(review)\n        {FAILS}", admissions),
    (admitting, "if not findings:", "if findings:", admissions),
    (admitting, "elif review.sub_resource not in", "elif False and review.sub_resource not in", admissions),
    (admitting, "    if changed:\n        raise", "    if False:\n        raise", admissions),
    (converting, "kept | {name: result[name]", "result | {name: result[name]", objects),
    (converting, "result: dict[str, Any] = copied(dict(obj))", "result: dict[str, Any] = dict(obj)", objects),
    (converting, 'if (group, obj.get("kind")) != (self.type.group, self.type.kind):', "if False:", objects),
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize(("module", "old", "new", "looks"), BUGS, ids=[f"{bug[0].__name__}: {bug[1]}" for bug in BUGS])
def test_seeded_bug_is_detected(module: ModuleType, old: str, new: str, looks: Callable[[Names], None]) -> None:
    looks(vars(module))
    with pytest.raises((Exception, pytest.fail.Exception)):
        looks(edited_module(module, (old, new)))
