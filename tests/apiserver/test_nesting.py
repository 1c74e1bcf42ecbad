"""What nests deeper than the server reads is refused; what does not passes every walk, whatever the verb."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.schemas.nesting import MAX_DEPTH
from tests.apiserver.core.protobuf_writer import body, message, number, text
from tests.apiserver.serving import CONFIG_MAPS, CRDS, WIDGETS, Answer, Caller, config_map, serving
from tests.nightly import by_day

APPLY, MERGE, STRATEGIC, PATCH = (
    {"Content-Type": f"application/{name}"}
    for name in ("apply-patch+yaml", "merge-patch+json", "strategic-merge-patch+json", "json-patch+json")
)
JSON = {"Content-Type": "application/json"}
YAML = {"Content-Type": "application/yaml"}
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}
# Levels around a nested value in a Widget and in a CRD.
IN_WIDGET = 2
IN_CRD = 9
OPEN = '{"type":"object","x-kubernetes-preserve-unknown-fields":true}'
NESTED = {
    "properties": ('{"type":"object","properties":{"a":', "}}", 2, '{"a":', "}"),
    "items": ('{"type":"array","items":', "}", 1, "[", "]"),
    "additionalProperties": ('{"type":"object","additionalProperties":', "}", 1, '{"a":', "}"),
    "allOf": ('{"allOf":[', "]}", 2, "", ""),
    "not": ('{"not":', "}", 1, "", ""),
}


def nested(levels: int, *, lists: bool = False) -> str:
    opening, closing = ("[", "]") if lists else ('{"a":', "}")
    return opening * levels + "1" + closing * levels


def crd(schema: str) -> bytes:
    version = f'{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}'
    names = '{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"}'
    spec = f'{{"group":"example.com","scope":"Namespaced","names":{names},"versions":[{version}]}}'
    return (
        '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",'
        f'"metadata":{{"name":"widgets.example.com"}},"spec":{spec}}}'
    ).encode()


def widget(value: str, name: str = "w", *, version: str = "") -> bytes:
    known = f',"resourceVersion":"{version}"' if version else ""
    metadata = f'{{"name":"{name}"{known}}}'
    return f'{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{metadata},"a":{value}}}'.encode()


async def writes(call: Caller, value: str, deeper: str) -> list[Answer]:
    """Write an object with a value in every way, and read it."""
    path = f"{WIDGETS}/w"
    send = call.call
    made = await send("POST", f"{WIDGETS}?fieldValidation=Strict", widget(value), **JSON)
    version = made.revision if made.status == 201 else ""
    changed = await send("PUT", path, widget(value.replace("1", "2"), version=version), **JSON)
    version = changed.revision if changed.status == 200 else ""
    return [
        made,
        changed,
        await send("PUT", path, widget(value.replace(":", ": "), version=version), **YAML),
        await send("PATCH", path, widget(value.replace("1", "3")), **MERGE),
        await send("PATCH", path, f'[{{"op":"test","path":"/a","value":{value}}}]'.encode(), **PATCH),
        await send("PATCH", path, f'[{{"op":"add","path":"/a","value":{value}}}]'.encode(), **PATCH),
        await send("PATCH", f"{path}?fieldManager=m&force=true", widget(value), **APPLY),
        await send("PATCH", f"{path}?fieldManager=n&force=true", widget(deeper), **APPLY),
        await send("PATCH", f"{WIDGETS}/x?fieldManager=m", widget(value.replace(":", ": "), "x"), **APPLY),
        await send("PUT", f"{CONFIG_MAPS}/c", f'{{"metadata":{{"name":"c"}},"z":{value}}}'.encode(), **JSON),
        await send("PATCH", f"{CONFIG_MAPS}/c", f'{{"z":{value}}}'.encode(), **STRATEGIC),
        await send("PATCH", f"{CONFIG_MAPS}/c", f'{{"data":{value}}}'.encode(), **STRATEGIC),
        await send("DELETE", path, f'{{"kind":"DeleteOptions","apiVersion":"v1","z":{value}}}'.encode(), **JSON),
    ]


# Refused for other reasons: a test that does not hold, data of a wrong type.
OTHER_REASONS = {4, 11}


@pytest.mark.parametrize("lists", [False, True], ids=["objects", "lists"])
async def test_deepest_allowed_nesting_is_processed(lists: bool) -> None:
    async with serving() as s:
        made = await s.call.post(CRDS, crd(OPEN), **JSON)
        assert made.status == 201, made.text
        await s.call.post(CONFIG_MAPS, config_map("c"))
        value = nested(MAX_DEPTH - IN_WIDGET, lists=lists)
        answers = await writes(s.call, value, value.replace("1", "4"))
        codes = [answer.status for answer in answers]
        assert all(code < 300 for place, code in enumerate(codes) if place not in OTHER_REASONS), codes
        assert all(code < 500 for code in codes), codes


@pytest.mark.parametrize("levels", by_day([MAX_DEPTH + 1, 400, 5_000, 300_000], [MAX_DEPTH + 1, 5_000]))
@pytest.mark.parametrize("lists", [False, True], ids=["objects", "lists"])
async def test_deeper_nesting_is_rejected(levels: int, lists: bool) -> None:
    async with serving() as s:
        await s.call.post(CRDS, crd(OPEN), **JSON)
        await s.call.post(CONFIG_MAPS, config_map("c"))
        await s.call.post(WIDGETS, widget("1"), **JSON)
        value = nested(levels, lists=lists)
        answers = await writes(s.call, value, value)
        codes = [answer.status for answer in answers]
        assert codes == [400] * len(codes)
        words = ("max depth", "objects and lists")
        assert all(any(each in answer.text for each in words) for answer in answers if "YAML" not in answer.text)


@pytest.mark.parametrize("keyword", NESTED)
async def test_schemas_and_their_objects(keyword: str) -> None:
    opening, closing, levels, value_opening, value_closing = NESTED[keyword]
    times = (MAX_DEPTH - IN_CRD) // levels
    is_structure = bool(value_opening)
    last = '{"type":"string"}' if is_structure else '{"minLength":1}'

    def whole(times: int) -> bytes:
        schema = opening * times + last + closing * times
        inside = schema if is_structure else f'{{"type":"string",{schema[1:]}'
        return crd(f'{{"type":"object","properties":{{"a":{inside}}}}}')

    async with serving() as s:
        refused = await s.call.post(CRDS, whole(times + 3), **JSON)
        assert "max depth" in refused.refuses(400, "BadRequest")
        made = await s.call.post(CRDS, whole(times), **JSON)
        assert made.status == 201, made.text
        value = value_opening * times + '"xx"' + value_closing * times
        answers = [
            await s.call.post(WIDGETS, widget(value), **JSON),
            await s.call.patch(f"{WIDGETS}/w?fieldValidation=Strict", {"metadata": {"labels": {"a": "b"}}}),
            await s.call.call("PATCH", f"{WIDGETS}/w?fieldManager=m&force=true", widget(value), **APPLY),
            await s.call.get(f"{WIDGETS}/w"),
            await s.call.get("/openapi/v3/apis/example.com/v1"),
            await s.call.get("/openapi/v2"),
            await s.call.call(
                "PATCH", f"{CRDS}/widgets.example.com?fieldManager=m&force=true", whole(times - 1), **APPLY
            ),
        ]
        codes = [answer.status for answer in answers]
        # "not" of "not": an even number of them is none.
        expected = 422 if keyword == "not" and times % 2 else 200
        assert codes[3:] == [200 if codes[0] < 300 else 404, 200, 200, 200], codes
        assert all(code in (200, 201, expected, 404) for code in codes[:3]), codes


async def test_patches_cannot_exceed_the_nesting_limit() -> None:
    async with serving() as s:
        await s.call.post(CRDS, crd(OPEN), **JSON)
        half = nested(MAX_DEPTH * 2 // 3)
        await s.call.post(WIDGETS, widget(half), **JSON)
        place = "/a" * (MAX_DEPTH * 2 // 3)
        grow = f'[{{"op":"copy","from":"/a","path":"{place}/b"}}]'
        deeper = f'[{{"op":"add","path":"{place}/a","value":{half}}}]'
        for operations in (grow, deeper):
            answer = await s.call.call("PATCH", f"{WIDGETS}/w", operations.encode(), **PATCH)
            assert "max depth" in answer.refuses(400, "BadRequest")


async def test_nested_json_in_a_string() -> None:
    async with serving() as s:
        for levels in (MAX_DEPTH + 1, 5_000):
            last = '{"apiVersion":"v1","x":' + nested(levels) + "}"
            annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
            step = "k:" + '{"a":' + nested(levels, lists=True) + "}"
            entry: dict[str, Any] = {
                "manager": "m",
                "operation": "Update",
                "apiVersion": "v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {step: {}}},
            }
            name = f"c{levels}"
            made = await s.call.post(CONFIG_MAPS, config_map(name, {"k": "1"}, annotations=annotations))
            assert made.status == 201, made.text
            changed = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "2"}}
            answers = [
                await s.call.put(f"{CONFIG_MAPS}/{name}?fieldManager=kubectl", made.json),
                await s.call.call("PATCH", f"{CONFIG_MAPS}/{name}?fieldManager=kubectl", changed, **APPLY),
                await s.call.post(CONFIG_MAPS, config_map(f"m{levels}", managedFields=[entry])),
                await s.call.get(f"{CONFIG_MAPS}?limit=1&continue=W1tbW1tbW1tbW1tb"),
            ]
            assert all(answer.status < 500 for answer in answers), [answer.text[:200] for answer in answers]


async def test_schema_in_protobuf() -> None:
    def whole(times: int) -> bytes:
        schema = text(5, "string")
        for _ in range(times):
            schema = message(28, schema)
        schema = text(5, "object") + message(29, text(1, "a") + message(2, text(5, "string") + schema))
        version = text(1, "v1") + number(2, 1) + number(3, 1) + message(4, message(1, schema))
        names = text(1, "widgets") + text(2, "widget") + text(4, "Widget") + text(5, "WidgetList")
        spec = text(1, "example.com") + message(3, names) + text(4, "Namespaced") + message(7, version)
        return body(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            message(1, text(1, "widgets.example.com")),
            message(2, spec),
        )

    async with serving() as s:
        for times in (MAX_DEPTH, 400, 3_000):
            answer = await s.call.post(CRDS, whole(times), **PROTOBUF)
            assert "nested more than" in answer.refuses(400, "BadRequest")
        assert (await s.call.post(CRDS, whole(0), **PROTOBUF)).status == 201
