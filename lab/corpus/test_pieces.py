"""The pieces of the corpus run: reading, objects and mutations of a schema, comparing, counting, the page."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict
from tests.apiserver.serving import Answer
from tests.conformance.target import WIDGET_SCHEMA, widget_crd

from lab.corpus import comparing
from lab.corpus.comparing import class_of, compare
from lab.corpus.counting import FEW, Counts
from lab.corpus.making import fullest, object_of, smallest, with_part
from lab.corpus.mutating import Mutation, chosen, mutations_of
from lab.corpus.outcomes import Cause, Outcome, outcome_of, plain
from lab.corpus.page import blocks
from lab.corpus.reading import read_folder
from lab.corpus.requests import Request, explained_fields, of_kind
from lab.corpus.schemas import Kind, features_of, kind_served, kinds_of, paths_of, places_of

KIND = kinds_of(widget_crd("example.com"))[0]
RULES = [{"rule": "self.a", "message": "a is needed"}, {"rule": " self.b "}]
RULED = Kind("example.com", "v1", "Widget", "widgets", namespaced=True, schema={"x-kubernetes-validations": RULES})


def _lines(*objects: Any) -> bytes:
    return b"".join(json.dumps({"from": "a/b:c", "object": each}).encode() + b"\n" for each in objects)


def test_corpus_folder_is_read_by_project(tmp_path: Path) -> None:
    crd, widget = {"kind": "CustomResourceDefinition"}, {"kind": "Widget"}
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(_lines(crd, widget)))
    (tmp_path / "a.jsonl").write_bytes(_lines(widget) + b"\n")
    (tmp_path / "README.md").write_text("words")
    first, second = read_folder(tmp_path)
    assert (first.name, len(first.crds), len(first.samples)) == ("a", 0, 1)
    assert (second.name, second.crds[0].object, second.samples[0].origin) == ("b", crd, "a/b:c")


@pytest.mark.parametrize(
    "line", [b"words", b'{"from": "a"}', b'{"object": {"kind": "A"}}', b'{"from": "a", "object": 1}', b"[]"]
)
def test_malformed_line_raises_error_with_number(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "a.jsonl").write_bytes(_lines({"kind": "A"}) + line)
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: "):
        read_folder(tmp_path)


def test_folder_without_projects_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file of a project"):
        read_folder(tmp_path)


def test_served_versions_are_kinds() -> None:
    crd = widget_crd("example.com", versions=("v1", "v2", "v3"))
    crd["spec"]["versions"][1]["served"] = False
    found = kinds_of(crd)
    assert [kind.api_version for kind in found] == ["example.com/v1", "example.com/v3"]
    assert (found[0].status, found[0].scale is None, found[0].collection("a")) == (
        True,
        False,
        "/apis/example.com/v1/namespaces/a/widgets",
    )
    assert kinds_of({"spec": "words"}) == []


def test_kinds_are_found_in_discovery() -> None:
    verbs = ["create", "get"]
    resources = [
        {"name": "namespaces/finalize", "kind": "Namespace", "verbs": ["update"]},
        {"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": verbs},
        {"name": "namespaces/status", "kind": "Namespace", "verbs": ["get"]},
        {"name": "componentstatuses", "kind": "ComponentStatus", "verbs": ["get"]},
    ]
    found = kind_served("v1", "Namespace", {"resources": resources})
    assert found is not None
    assert (found.collection("a"), found.status, found.api_version) == ("/api/v1/namespaces", True, "v1")
    assert kind_served("v1", "ComponentStatus", {"resources": resources}) is None
    assert kind_served("v1", "Pod", {"resources": resources}) is None


def test_smallest_and_fullest_objects_of_schema() -> None:
    assert smallest(WIDGET_SCHEMA) == {}
    spec = fullest(WIDGET_SCHEMA)["spec"]
    assert spec == {
        "size": 0, "colour": "red", "word": "a", "mode": "a", "names": ["a"], "parts": [{"name": "a", "v": 1}],
        "port": 1, "free": {}, "maybe": "a", "table": {"key": 1},
    }  # fmt: skip
    assert with_part(WIDGET_SCHEMA, ("spec", "parts", 0, "v")) == {"spec": {"parts": [{"name": "a", "v": 1}]}}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "minLength": 3}, "aaa"),
        ({"type": "string", "pattern": "^[0-9]+s$"}, "10s"),
        ({"type": "string", "format": "date-time"}, "2024-01-02T03:04:05Z"),
        ({"type": "integer", "minimum": 3, "exclusiveMinimum": True, "multipleOf": 5}, 5),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [1, 2]),
        ({"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}, "b": {}}}, {"a": True}),
        ({"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}, {"key": "a"}),
        ({"type": "object", "oneOf": [{"required": ["b"]}], "properties": {"a": {}, "b": {"default": 7}}}, {"b": 7}),
        ({"x-kubernetes-int-or-string": True}, 1),
    ],
)
def test_generated_value_satisfies_schema(schema: dict[str, Any], expected: Any) -> None:
    assert smallest(schema) == expected


def _mutations(schema: dict[str, Any], value: Any) -> list[Mutation]:
    whole = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": value}
    places = places_of({"type": "object", "properties": {"spec": schema, "metadata": {"type": "object"}}}, whole)
    return list(mutations_of(places, whole))


@pytest.mark.parametrize(
    ("schema", "value", "name", "mutated"),
    [
        ({"type": "string"}, "a", "integer for string", 7),
        ({"type": "string"}, "a", "null", None),
        ({"type": "integer"}, 1, "an integer written as 1.0 for integer", 1.0),
        ({"type": "object", "properties": {}}, {}, "an unknown field", {"unknownField": "x"}),
        ({"type": "string", "enum": ["a"]}, "a", "not of the enum", "not-of-the-enum"),
        ({"type": "string", "pattern": "^a"}, "a", "pattern", "a\n"),
        ({"type": "integer", "format": "int32"}, 1, "format int32", 2**31),
        ({"type": "integer", "minimum": 3}, 4, "below the minimum", 2),
        ({"type": "integer", "maximum": 3}, 1, "above the maximum", 4),
        ({"type": "integer", "multipleOf": 2}, 2, "no multiple", 3.0),
        ({"type": "string", "minLength": 2}, "ab", "shorter than minLength", "a"),
        ({"type": "string", "maxLength": 2}, "ab", "longer than maxLength", "aaa"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["a"], "fewer than minItems", []),
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, [1], "more than maxItems", [1, 2]),
        ({"type": "array", "x-kubernetes-list-type": "set"}, ["a"], "an item twice: set", ["a", "a"]),
        ({"type": "object", "required": ["a"]}, {"a": 1}, "a required field is null", {"a": None}),
        ({"type": "object", "minProperties": 1}, {"a": 1}, "fewer than minProperties", {}),
        ({"type": "object", "maxProperties": 0}, {}, "more than maxProperties", {"k0": 0}),
        ({"type": "object", "oneOf": [{"required": ["a"]}]}, {"a": 1}, "oneOf without one", {}),
        ({"x-kubernetes-int-or-string": True}, 1, "boolean for int or string", True),
    ],
)
def test_each_rule_of_schema_is_violated(schema: dict[str, Any], value: Any, name: str, mutated: Any) -> None:
    whole = {"spec": value}
    found = [each.applied_to(whole)["spec"] for each in _mutations(schema, value) if each.name == name]
    assert mutated in found
    assert whole == {"spec": value}


def test_fields_are_omitted_except_metadata() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    found = {each.name: each for each in _mutations(schema, {"a": "x"}) if each.at == ("spec", "a")}
    assert found["a required field is missing"].applied_to({"spec": {"a": "x"}}) == {"spec": {}}
    assert {each.at[0] for each in _mutations(schema, {"a": "x", "b": "y"})} == {"spec"}
    assert "a field is left out" in {each.name for each in _mutations(schema, {"b": "y"})}


def test_mutations_are_sampled_deterministically_by_name() -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in "abcdefgh"}}
    every = _mutations(schema, dict.fromkeys("abcdefgh", "x"))
    names = {each.name for each in every}
    first = chosen(every, len(names), "seed")
    assert {each.name for each in first} == names
    assert first == chosen(every, len(names), "seed")
    assert first != chosen(every, len(names), "another")
    assert len(chosen(every, 10**6, "seed")) == len(every)


def test_different_schemas_are_sampled_first() -> None:
    kinds: list[dict[str, Any]] = [{"type": "string"}] * 20 + [{"type": "string", "pattern": "^x"}]
    schema = {"type": "object", "properties": {f"f{at}": each for at, each in enumerate(kinds)}}
    nulls = [each for each in _mutations(schema, {f"f{at}": "x" for at in range(21)}) if each.name == "null"]
    assert any("pattern" in each.features for each in chosen(nulls, 3, "seed"))


def test_features_contain_no_project_data() -> None:
    schema = {"type": "string", "description": "words", "pattern": "^secret$", "default": "x", "enum": ["a"]}
    assert features_of(schema) == {"type: string", "pattern", "default: string", "enum"}
    more = {"additionalProperties": False, "nullable": True, "anyOf": [{"required": ["a"]}, {"type": "string"}]}
    assert features_of(more) == {"additionalProperties: false", "nullable", "anyOf: required, type"}
    assert [len(place.path) for place in paths_of(WIDGET_SCHEMA)].count(2) == 13


GOOD = Outcome(201, body={"spec": {"a": 1}})
BAD = Outcome(422, "Invalid", "words", (Cause("spec.a", "FieldValueInvalid", "bad"),))


@pytest.mark.parametrize(
    ("ours", "real", "what"),
    [
        (GOOD, BAD, comparing.VERDICT),
        (BAD, GOOD, comparing.VERDICT),
        (Outcome(500, "InternalError"), BAD, comparing.FAULT),
        (Outcome(500, "InternalError"), GOOD, comparing.FAULT),
        (BAD, Outcome(500, "InternalError"), comparing.STATUS),
        (dataclasses.replace(BAD, status=400), BAD, comparing.STATUS),
        (dataclasses.replace(BAD, reason="BadRequest"), BAD, comparing.REASON),
        (dataclasses.replace(BAD, causes=(Cause("spec.b", "FieldValueInvalid", "bad"),)), BAD, comparing.FIELDS),
        (dataclasses.replace(BAD, causes=()), BAD, comparing.FIELDS),
        (dataclasses.replace(GOOD, warnings=("w",)), GOOD, comparing.WARNINGS),
        (dataclasses.replace(GOOD, body={"spec": {"a": 1.0}}), GOOD, comparing.BODY),
        (dataclasses.replace(GOOD, body={"spec": {}}), GOOD, comparing.BODY),
    ],
)
def test_each_compared_aspect_is_detected(ours: Outcome, real: Outcome, what: str) -> None:
    found = compare(ours, real)
    assert found is not None
    assert found.what == what
    assert class_of(Request("create", "POST", "/"), found, ours, real).startswith(f"writes: {what}: ")


@pytest.mark.parametrize(
    ("ours", "real"),
    [
        (GOOD, GOOD),
        (dataclasses.replace(BAD, message="other words"), BAD),
        (dataclasses.replace(BAD, causes=(*BAD.causes, Cause("spec.a", "FieldValueRequired", "again"))), BAD),
        (dataclasses.replace(GOOD, warnings=("a", "b")), dataclasses.replace(GOOD, warnings=("b", "a"))),
        (Outcome(500), Outcome(500)),
    ],
)
def test_equivalent_outcomes_are_equal(ours: Outcome, real: Outcome) -> None:
    assert compare(ours, real) is None


def _answer(status: int, body: Any, *warnings: str) -> Answer:
    headers = CIMultiDict([("Warning", f'299 - "{text}"') for text in warnings])
    return Answer(status, headers, json.dumps(body).encode())


def test_responses_are_parsed() -> None:
    status = {
        "reason": "Invalid",
        "message": "m",
        "details": {"causes": [{"field": "a", "reason": "r", "message": "c"}]},
    }
    assert outcome_of(_answer(422, status, "w")) == Outcome(422, "Invalid", "m", (Cause("a", "r", "c"),), ("w",))
    assert outcome_of(_answer(200, {"a": {"b": 1}}), lambda body: body["a"]) == Outcome(200, body={"b": 1})
    assert outcome_of(Answer(500, CIMultiDict(), b"no JSON")).message == "no JSON"
    assert Outcome.from_json(BAD.as_json()) == BAD
    assert Outcome.from_json(GOOD.as_json()) == GOOD


def test_only_values_set_by_server_are_omitted() -> None:
    def body(number: int) -> dict[str, Any]:
        entries: list[Any] = [
            {"manager": name, "time": f"2026-01-02T03:04:0{number}Z", "fieldsV1": {}} for name in "ab"
        ]
        metadata: dict[str, Any] = {
            "uid": f"0b2c3d4e-1f2a-4b3c-8d4e-5f6a7b8c9d0{number}",
            "resourceVersion": f"1{number}",
            "creationTimestamp": f"2026-01-02T03:04:0{number}Z",
            "managedFields": entries if number else entries[::-1],
            "generateName": "a-",
            "name": f"a-{number}",
        }
        return {"metadata": metadata, "spec": {"time": "2020-01-02T03:04:05Z", "uid": "mine", "name": "mine"}}

    assert plain(body(0)) == plain(body(1))
    assert plain(body(0))["spec"] == body(0)["spec"]
    table = {"kind": "Table", "columnDefinitions": [{"name": "Age"}, {"name": "A"}], "rows": [{"cells": ["3s", "3s"]}]}
    assert plain(table)["rows"] == [{"cells": ["an age", "3s"]}]


def test_documents_are_filtered_by_kind() -> None:
    discovery = {"resources": [{"name": "widgets/status"}, {"name": "widgets"}, {"name": "widgetsets"}]}
    asked = Request("discovery", "GET", "/", kind=KIND)
    assert of_kind(asked, discovery) == [{"name": "widgets"}, {"name": "widgets/status"}]
    ours = {
        "x-kubernetes-group-version-kind": [{"kind": "Widget"}],
        "properties": {"kind": {}, "spec": {"type": "object"}},
    }
    document = {"components": {"schemas": {"a": ours, "b": {"x-kubernetes-group-version-kind": [{"kind": "Other"}]}}}}
    found = of_kind(dataclasses.replace(asked, action="OpenAPI v3"), document)
    assert [each["properties"] for each in found] == [{"spec": {"type": "object"}}]
    crd = {"metadata": {"managedFields": [{"manager": "a"}, {"subresource": "status"}]}, "status": 2}
    expected = {"metadata": {"managedFields": [{"manager": "a"}]}, "status": None}
    assert of_kind(Request("create a CRD", "POST", "/"), crd) == expected
    text = "FIELDS:\n  kind\t<string>\n    words\n\n  spec\t<Object>\n    more words\n"
    assert explained_fields(text) == ["FIELDS:", "  spec\t<Object>", "    more words"]


def _counts(*answers: tuple[Request, Outcome, Outcome, int]) -> Counts:
    counts = Counts()
    for request, ours, real, number in answers:
        for _ in range(number):
            counts.add("a", "widgets/sample-1", "a/b:c", request, ours, real)
    return counts


CREATE = Request("create", "POST", "/", {"a": 1}, kind=RULED)
BROKEN_RULE = Outcome(422, "Invalid", causes=(Cause("", "", "Invalid value: a is needed"),))


def test_requests_are_counted_by_group() -> None:
    mutated = dataclasses.replace(CREATE, mutation="null", features=frozenset({"pattern"}))
    counts = _counts(
        (CREATE, GOOD, GOOD, 3),
        (CREATE, GOOD, BROKEN_RULE, 2),
        (mutated, GOOD, BAD, 1),
        (mutated, GOOD, BROKEN_RULE, 1),
        (Request("get", "GET", "/"), GOOD, dataclasses.replace(GOOD, body=None), 1),
    )
    read = counts.as_json()
    assert read["all"] == {"requests": 8, "equal": 3, "same_verdict": 4}
    assert read["writes"] == {"requests": 5, "equal": 3, "same_verdict": 3}
    assert read["mutations"] == {"requests": 2, "equal": 0, "same_verdict": 0}
    assert read["reads"] == {"requests": 1, "equal": 0, "same_verdict": 1}
    assert read["projects"]["a"]["all"] == read["all"]
    reproduction = next(each["reproduction"] for each in read["differences"] if each["reproduction"]["mutation"])
    assert reproduction["flags"] == "--project a --only 'widgets/sample-1'"
    assert (reproduction["body"], reproduction["features"]) == ({"a": 1}, ["pattern"])


@pytest.mark.parametrize(
    ("answers", "short"),
    [
        ([(CREATE, GOOD, GOOD, 199), (CREATE, GOOD, BAD, 1)], ""),
        (
            [(CREATE, GOOD, GOOD, 193), (CREATE, GOOD, BAD, 1), (CREATE, BAD, GOOD, 1)],
            "writes have the same verdict on 98.97%",
        ),
        ([(CREATE, GOOD, GOOD, 97), (CREATE, GOOD, BAD, 3)], "writes of a have the same verdict on 97.00%"),
        (
            [(dataclasses.replace(CREATE, action="create a CRD"), GOOD, BAD, 1)],
            "CRD widgets/sample-1 is accepted by one",
        ),
        ([(CREATE, Outcome(500), GOOD, 1), (CREATE, GOOD, GOOD, 999)], "1 answers are a 500"),
        ([(Request("get", "GET", "/"), GOOD, dataclasses.replace(GOOD, body=None), FEW)], ""),
        (
            [(Request("get", "GET", "/"), GOOD, dataclasses.replace(GOOD, body=None), FEW + 1)],
            "6 differences that nobody",
        ),
        ([(CREATE, GOOD, BROKEN_RULE, 50)], "writes have the same verdict on 0.00%"),
    ],
)
def test_each_bound_is_checked(answers: list[tuple[Request, Outcome, Outcome, int]], short: str) -> None:
    found = _counts(*answers).shortcomings()
    assert any(short in line for line in found) if short else found == []


def test_page_contains_figures() -> None:
    counts = _counts((CREATE, GOOD, GOOD, 1998), (CREATE, GOOD, BAD, 2))
    made = blocks(counts.as_json())
    assert "| writes | 2,000 | 99.90% | 99.90% |" in made["groups"]
    assert "| a | 2,000 | 99.90% | 99.90% | 0 |  |  |" in made["projects"]
    assert "| 2 | in classes of at most 5, not looked into |" in made["reasons"]


def test_objects_are_built_from_spec() -> None:
    assert object_of(KIND, "a", {"spec": 1, "metadata": {"name": "other"}}) == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": 1,
    }
