"""What a mutating policy makes of each sort of value: in a patch, in an object in a patch, and in fields to be applied.

In a patch a value is protobuf's: integers that a double has not are texts. Objects are made of Go's values: there,
integers are doubles, and what Go has a type of its own for cannot be. What is applied keeps its integers.

Source: apiserver pkg/admission/plugin/policy/mutating/patch; pkg/cel/mutation/dynamic/objects.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.conformance.policy_objects import (
    ADMISSION,
    apply_configuration,
    constraints,
    json_patch,
    mutating_policy,
    mutating_seen,
)
from tests.conformance.target import Api, conformance, widget_crd


@dataclass(frozen=True)
class Refused:
    """A refusal that has these words."""

    words: str
    status: int = 403


SENT = {"big": 9007199254740993, "whole": 2.0, "list": [1, 2.5, {"a": "b"}]}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
PATCHED: dict[str, Any] = {
    "9007199254740991": 9007199254740991,
    "9007199254740992": "9007199254740992",
    "9223372036854775807": "9223372036854775807",
    "-9007199254740992": "-9007199254740992",
    "7u": 7,
    "9007199254740993u": "9007199254740993",
    "2.0": 2,
    "1e22": 1e22,
    "1e-7": 1e-07,
    "0.0 / 0.0": Refused("google.protobuf.Value.number_value: invalid NaN value"),
    "-0.0": 0,
    "[9007199254740993, 1]": ["9007199254740993", 1],
    "{'a': 9007199254740993}": {"a": "9007199254740993"},
    "{1: 'a'}": Refused("unsupported type conversion from 'int' to string"),
    "{true: 'a'}": Refused("type conversion error from bool to 'string'"),
    "object.spec": {"big": "9007199254740993", "list": [1, 2.5, {"a": "b"}], "whole": 2},
    "object.spec.whole": 2,
    "object.spec.list": [1, 2.5, {"a": "b"}],
    "Object.spec{a: 9007199254740993, b: 9007199254740993u}": {"a": 9007199254740992, "b": 9007199254740992},
    "Object.spec{c: [9007199254740993], d: {'x': Object.spec.d{e: 9007199254740993}}, e: 1.5}": {
        "c": [9007199254740992],
        "d": {"x": {"e": 9007199254740992}},
        "e": 1.5,
    },
    "Object.spec{a: timestamp('2020-01-01T00:00:00Z')}": Refused("proto: invalid type: time.Time"),
    "Object.spec{a: duration('90m')}": Refused("proto: invalid type: time.Duration"),
    "Object.spec{a: null}": Refused("proto: invalid type: structpb.NullValue"),
    "Object.spec{?a: optional.of(1), ?b: optional.none()}": {"a": 1},
    "null": None,
    "type(1)": Refused("type conversion not supported for 'type'"),
    "optional.of(1)": 1,
    "optional.none()": Refused("optional.none() dereference"),
    "duration('90m')": "5400s",
    "duration('1500ms')": "1.5s",
    "timestamp('2020-01-01T00:00:00.5+01:00')": "2020-01-01T00:00:00.5+01:00",
    "b'ab'": "YWI=",
    "ip('::1')": Refused("type conversion error from 'IP' to '*structpb.Value'"),
    "quantity('1Gi')": Refused("type conversion error from 'Quantity' to '*structpb.Value'"),
    "Object.spec{a: ip('::1')}": Refused("proto: invalid type: netip.Addr"),
    "JSONPatch{op: 'x', path: 'y'}": Refused("cannot convert to native type: *structpb.Value"),
    "Object.spec{a: quantity('1Gi')}": Refused("proto: invalid type: *resource.Quantity"),
    "Object.spec{a: format.dns1123Label()}": Refused("proto: invalid type: cel.Format"),
    "Object.spec{a: 0.0 / 0.0}": Refused("google.protobuf.Value.number_value: invalid NaN value"),
    "Object.spec{a: type(1)}": {"a": "int"},
    "Object.spec{a: [timestamp('2020-01-01T00:00:00Z')]}": Refused("proto: invalid type: time.Time"),
    "Object.spec{a: [null]}": Refused("proto: invalid type: structpb.NullValue"),
    "Object.spec{a: {'b': null}}": Refused("proto: invalid type: structpb.NullValue"),
    "Object.spec{a: optional.none()}": {"a": None},
}
APPLIED: dict[str, Any] = {
    "9007199254740992": 9007199254740992,
    "9223372036854775807": 9223372036854775807,
    "7u": Refused(".spec.v:"),
    "9007199254740994.0": 9007199254740994,
    "0.0 / 0.0": Refused("json: unsupported value: NaN", 500),
    "[9007199254740993, 1]": [9007199254740993, 1],
    "{1: 'a'}": Refused("denied request: "),
    "null": Refused(".spec.v:"),
    "type(1)": "int",
    "optional.none()": None,
    "duration('90m')": Refused(".spec.v:"),
    "timestamp('2020-01-01T00:00:00.5+01:00')": Refused(".spec.v:"),
    "b'ab'": Refused(".spec.v:"),
    "ip('::1')": Refused(".spec.v:"),
    "quantity('1Gi')": Refused(".spec.v:"),
    "[ip('::1')]": Refused(".spec.v[0]:"),
}


@conformance(
    "Mutating policies: values of each type have their form, or none",
    ("in a patch", "[JSONPatch{op: 'add', path: '/spec/v', value: EXPR}]", PATCHED),
    ("applied", "Object{spec: Object.spec{v: EXPR}}", APPLIED),
)
async def test_values(api: Api, template: str, expected: Mapping[str, Any]) -> None:
    crd = widget_crd(api.group(), schema={"type": "object", "properties": {"spec": OPEN}}, status=False, scale=False)
    widgets = await api.define(crd)
    make = json_patch if "JSONPatch" in template else apply_configuration
    rule = {"apiGroups": [api.group()], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
    for number, source in enumerate(expected):
        where = constraints(api, {**rule, "resourceNames": [f"w{number}"]})
        made = mutating_policy(api, f"p{number}", make(template.replace("EXPR", source)), matchConstraints=where)
        name = made["metadata"]["name"]
        await api.created(f"{ADMISSION}/mutatingadmissionpolicies", made)
        bound = {"metadata": {"name": f"{name}-bound"}, "spec": {"policyName": name}}
        await api.created(f"{ADMISSION}/mutatingadmissionpolicybindings", bound)
    await mutating_seen(api)

    async def knows_the_kind() -> bool:  # a real server learns later how objects of a new kind are merged
        probe = await api.post(f"{widgets}?dryRun=All", api.widget("w0", SENT))
        return "v" in probe.json.get("spec", {})

    await api.eventually(knows_the_kind)
    for number, (source, value) in enumerate(expected.items()):
        answer = await api.post(widgets, api.widget(f"w{number}", SENT))
        if isinstance(value, Refused):
            said = answer.json["message"].replace("\N{NO-BREAK SPACE}", " ")  # protobuf's words have either, by chance
            assert answer.status == value.status, source
            assert value.words in said, source
        else:
            assert (answer.status, answer.json["spec"]["v"]) == (201, value), source
