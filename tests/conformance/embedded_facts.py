"""What a real server says of objects inside custom resources, and what it keeps below ``additionalProperties: true``.

The fields and the values that each is tried with are written by hand. ``embedded_facts.json`` has what became of them,
or the causes; it is written by ``python -m tests.conformance.embedded_facts``, which asks a real server.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.conformance import recording
from tests.conformance.target import Api, widget_crd

FILE = Path(__file__).with_name("embedded_facts.json")
Json = dict[str, Any]
TEXT: Json = {"type": "string"}
OPEN: Json = {"x-kubernetes-preserve-unknown-fields": True}
OBJECT: Json = {"type": "object"}
EMBEDDED: Json = {**OBJECT, "x-kubernetes-embedded-resource": True}
SPEC: Json = {"spec": {**OBJECT, "properties": {"q": TEXT}}}
RESTRICTED: Json = {
    "metadata": {**OBJECT, "properties": {"name": {**TEXT, "pattern": "^a"}}},
    "kind": {"enum": ["K"], **TEXT},
}
WHOLE: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "zz": 1, "spec": {"q": "1", "r": 2}}
OWNER: Json = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}


def whole(field: str, *values: Any) -> list[Json]:
    return [{**WHOLE, field: value} for value in values]


def described(field: str, *values: Any) -> list[Json]:
    return whole("metadata", *({field: value} for value in values))


OBJECTS: tuple[Any, ...] = (
    {},
    {"apiVersion": "v1"},
    {"apiVersion": "", "kind": ""},
    *whole("apiVersion", "a/b/c", "/v1", "apps/", "A_!/v1", 1, None),
    *whole("kind", 1, None, "pod s", "a.b", "K"),
    *whole("metadata", None, [], "x", {}, {"unknown": 1, "name": "x"}, {"creationTimestamp": None, "name": "x"}),
    *whole("metadata", {"uid": "1", "resourceVersion": "5", "selfLink": "x", "deletionGracePeriodSeconds": -5}),
    *described("name", "A_B", "a/b", "..", "", 1, None, "a" * 300),
    *described("generateName", "A_"),
    *described("namespace", "A_B", "a" * 64, "a.b", ""),
    *described("labels", {"a b": "c"}, {"a": "c d"}, {"a": 1}, {"a": None}, None, {}),
    *described("annotations", {"A B": "c"}, {"A/B/c": "c"}, {"A/b": ""}, []),
    *described("ownerReferences", [{}], [OWNER], [{**OWNER, "x": 1}], None, {}),
    *described("finalizers", ["a b"], ["a/b"], [1], ["x", "x"]),
    *described("creationTimestamp", "2020-01-01T00:00:00Z"),
    *described("generation", -1, "1", 1, 2.0, 1.5),
    *described("managedFields", [{}], [{"operation": "Update"}], [{"operation": "Apply", "fieldsType": "X"}]),
    None,
    "x",
    [],
)
FEW = (OBJECTS[0], {**WHOLE, "metadata": {"labels": {"a b": "c"}, "unknown": 1}}, {**WHOLE, "kind": 1}, WHOLE)
VALUES: tuple[Any, ...] = (
    {"a": 1, "b": {"c": 2}},
    {"p": {"q": "1", "z": 2}, "o": {"p": {"z": 1}}},
    {"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}},
    [{"a": 1, "b": {"c": 1}}],
    [{"a": 1}, [{"b": 1}], None],
    {"a": [{"b": [{"c": 1}]}]},
    {"a": None},
    {},
    "x",
)
PART: Json = {"p": {**OBJECT, "properties": {"q": TEXT}}}
FIELDS: dict[str, tuple[Json, tuple[Any, ...]]] = {
    "open": ({**EMBEDDED, **OPEN}, OBJECTS),
    "with fields": ({**EMBEDDED, "properties": SPEC}, FEW),
    "restricted": ({**EMBEDDED, "properties": RESTRICTED}, (*FEW, {**WHOLE, "kind": "K", "metadata": {"name": "ab"}})),
    "in a list": ({"type": "array", "items": {**EMBEDDED, **OPEN}}, tuple([value] for value in FEW)),
    "in a map": ({**OBJECT, "additionalProperties": {**EMBEDDED, **OPEN}}, tuple({"k": value} for value in FEW)),
    "in another": (
        {**EMBEDDED, "properties": {"e": {**EMBEDDED, **OPEN}}},
        tuple({**WHOLE, "e": value} for value in FEW),
    ),
    "all": ({**OBJECT, "additionalProperties": True}, VALUES),
    "all beside one": ({**OBJECT, "additionalProperties": True, "properties": PART}, VALUES),
    "none": ({**OBJECT, "additionalProperties": False}, VALUES),
    "objects": ({**OBJECT, "additionalProperties": OBJECT}, VALUES),
    "open objects": ({**OBJECT, "additionalProperties": {**OBJECT, **OPEN}}, VALUES),
    "open beside one": ({**OBJECT, **OPEN, "properties": PART}, VALUES),
    "object": (OBJECT, VALUES),
    "list": ({"type": "array", "items": OBJECT}, VALUES),
    "open list": ({"type": "array", "items": {**OBJECT, **OPEN}}, VALUES),
    "anything": (OPEN, VALUES),
}  # fmt: skip


def schema() -> Json:
    """Return a schema with all these fields."""
    fields = {name: field for name, (field, _) in FIELDS.items()}
    return {**OBJECT, "properties": {"spec": {**OBJECT, "properties": fields}}}


async def ask(api: Api, path: str) -> Json:
    """Ask a server about every value, as a strict client and as one that does not care; nothing is stored."""
    answers: Json = {}
    for name, (_, values) in FIELDS.items():
        for place, value in enumerate(values):
            for mode in ("Strict", "Ignore"):
                answer = await api.post(f"{path}?dryRun=All&fieldValidation={mode}", api.widget("w", {name: value}))
                answers[f"{name} {place} {mode}"] = _seen(answer.status, answer.json)
    return answers


def _seen(status: int, body: Json) -> Any:
    if status == 201:
        return body["spec"]
    causes = body.get("details", {}).get("causes")
    if causes:
        return [status, *sorted(f"{cause['field']}: {cause['message']}" for cause in causes)]
    return [status, body["message"]]


def read_facts() -> Json:
    return recording.read_facts(FILE)


async def _record() -> None:
    async with recording.real_server() as api:
        recording.write_facts(
            FILE, await ask(api, await api.define(widget_crd(api.group(), schema=schema(), scale=False)))
        )


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
