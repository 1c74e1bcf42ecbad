"""What a real server says of wrong policies and bindings, of both kinds, a line each in ``policy_facts.json``.

``python -m tests.conformance.policy_facts`` asks a real server anew.

Source: Kubernetes pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.conformance import recording
from tests.conformance.policy_objects import ADMISSION
from tests.conformance.target import Api

FILE = Path(__file__).with_name("policy_facts.json")
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
POLICY = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
BINDING = {"policyName": "p", "validationActions": ["Deny"]}
APPLIES = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
MUTATING = {
    "matchConstraints": {"resourceRules": [RULE]},
    "mutations": [APPLIES],
    "reinvocationPolicy": "Never",
}
NAME = "wrong-policy"
REFERENCE = {"name": "a", "parameterNotFoundAction": "Deny"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "policy": ("validatingadmissionpolicies", POLICY),
    "binding": ("validatingadmissionpolicybindings", BINDING),
    "mutating": ("mutatingadmissionpolicies", MUTATING),
    "mutating binding": ("mutatingadmissionpolicybindings", {"policyName": "p"}),
}


def _validation(**fields: Any) -> dict[str, Any]:
    return {"validations": [{"expression": "true", **fields}]}


def _variables(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"variables": [{"name": name, "expression": source} for name, source in pairs]}


def _rules(**fields: Any) -> dict[str, Any]:
    return {"matchConstraints": {"resourceRules": [{**RULE, **fields}]}}


def _annotation(key: str, source: str) -> dict[str, Any]:
    return {"auditAnnotations": [{"key": key, "valueExpression": source}]}


POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a constant", _validation(expression="int('a') == 1 || string(null) == 'b'")),
    ("a constant of a message", _validation(messageExpression="string(null)")),
    ("a constant of a variable", _variables(("a", "int('a')"))),
    ("a constant of an annotation", _annotation("a", "string(int('a'))")),
    ("a constant of a condition", {"matchConditions": [{"name": "a", "expression": "bool('x')"}]}),
    ("a pattern", _validation(expression="object.metadata.name.find('(') == ''")),
    ("nothing", {"matchConstraints": None, "validations": None}),
    ("no rules", {"matchConstraints": {}}),
    ("a failure policy", {"failurePolicy": "No"}),
    ("a match policy", {"matchConstraints": {"resourceRules": [RULE], "matchPolicy": "No"}}),
    ("no operations", _rules(operations=[])),
    ("an operation", _rules(operations=["READ"])),
    ("all and one operation", _rules(operations=["*", "CREATE"])),
    ("no groups", _rules(apiGroups=[])),
    ("all and one group", _rules(apiGroups=["*", ""])),
    ("an empty version", _rules(apiVersions=[""])),
    ("no resources", _rules(resources=[])),
    ("all and one resource", _rules(resources=["*", "pods"])),
    ("a scope", _rules(scope="No")),
    ("names", _rules(resourceNames=["a/b", "c", "c", ".", "x%"])),
    ("an excluding rule", {"matchConstraints": {"resourceRules": [RULE], "excludeResourceRules": [{}]}}),
    ("a selector", {"matchConstraints": {"resourceRules": [RULE], "objectSelector": {"matchLabels": {"a b": "c"}}}}),
    ("params without a kind", {"paramKind": {}}),
    ("params of three parts", {"paramKind": {"apiVersion": "a/b/c", "kind": "A"}}),
    ("params of no version", {"paramKind": {"apiVersion": "a/", "kind": "A"}}),
    ("params of nothing", {"paramKind": {"apiVersion": "/", "kind": "A"}}),
    ("params of a wrong group", {"paramKind": {"apiVersion": "A_/v1", "kind": "A"}}),
    ("params of a wrong version", {"paramKind": {"apiVersion": "a/V.1", "kind": "A"}}),
    ("params of a wrong kind", {"paramKind": {"apiVersion": "v1", "kind": "A.B"}}),
    ("a condition's syntax", {"matchConditions": [{"name": "a", "expression": "object.x ="}]}),
    ("a condition's type", {"matchConditions": [{"name": "a", "expression": "1"}]}),
    ("a condition of dyn", {"matchConditions": [{"name": "a", "expression": "object.x"}]}),
    ("an empty condition", {"matchConditions": [{"name": "", "expression": " "}]}),
    ("conditions of a name", {"matchConditions": [{"name": "a", "expression": "true"}] * 2}),
    (
        "a condition of variables",
        {"matchConditions": [{"name": "a", "expression": "variables.a"}], **_variables(("a", "true"))},
    ),
    ("a condition of params", {"matchConditions": [{"name": "a", "expression": "params.a == 1"}]}),
    ("too many conditions", {"matchConditions": [{"name": f"a{n}", "expression": "true"} for n in range(65)]}),
    ("an empty expression", _validation(expression=" ")),
    ("no bool", _validation(expression="'a'")),
    ("dyn", _validation(expression="object.a")),
    ("a syntax", _validation(expression="object.a ==")),
    ("an unknown name", _validation(expression="no == 1")),
    ("params without a kind for them", _validation(expression="params.a == 1")),
    ("variables without any", _validation(expression="variables.a == 1")),
    ("an unknown function", _validation(expression="object.a.no()")),
    ("a field of a request", _validation(expression="request.no == 1")),
    ("a field of a namespace", _validation(expression="namespaceObject.metadata.uid == ''")),
    ("two faults", {"validations": [{"expression": "a"}, {"expression": "1"}]}),
    ("a reason", _validation(reason="No")),
    ("an unauthorized reason", _validation(reason="Unauthorized")),
    ("an empty message", _validation(message=" ")),
    ("a message of two lines", _validation(message="a\nb")),
    ("an empty message expression", _validation(messageExpression="  ")),
    ("a message's type", _validation(messageExpression="1")),
    ("a message of dyn", _validation(messageExpression="object.a")),
    ("a message's authorizer", _validation(messageExpression="string(authorizer.path('/x').check('get').allowed())")),
    ("a variable's name", _variables(("a-b", "1"))),
    ("a reserved variable", _variables(("namespace", "1"))),
    ("a variable of nothing", _variables((" ", " "))),
    ("a variable's fault", _variables(("a", "no"))),
    ("a later variable", _variables(("a", "variables.b"), ("b", "1"))),
    ("itself", _variables(("a", "variables.a"))),
    ("a variable's type", {**_variables(("a", "1")), **_validation(expression="variables.a == 'x'")}),
    ("a variable's list", {**_variables(("a", "[1]")), **_validation(expression="variables.a[0] == 'x'")}),
    ("an unknown variable", {**_variables(("a", "1")), **_validation(expression="variables.b == 1")}),
    ("an annotation's key", _annotation("a b", "'x'")),
    ("an annotation of nothing", _annotation("", "")),
    ("an annotation's type", _annotation("a", "1")),
    ("an annotation's fault", _annotation("a", " no ")),
    ("a long annotation", _annotation("a", f"'{'x' * 5200}'")),
    ("annotations of a key", {"auditAnnotations": [{"key": "a", "valueExpression": "'x'"}] * 2}),
    ("null", _validation(expression="null")),
    ("an instant", _validation(expression="timestamp('2020-01-01T00:00:00Z')")),
    ("spans", _validation(expression="[duration('1s')]")),
    ("an authorizer", _validation(expression="authorizer.path('/x')")),
    ("an optional", _validation(expression="optional.of(1)")),
    ("a variable's authorizer", {**_variables(("a", "authorizer")), **_validation(expression="variables.a.x == 1")}),
    ("an optional variable", {**_variables(("a", "optional.of(1)")), **_validation(expression="variables.a.value()")}),
    ("variables as a whole", {**_variables(("a", "1")), **_validation(expression="variables")}),
    ("a function of the next version", _validation(expression="includes([1], [1])")),
    ("a method of the next version", _validation(expression="[1].includes([1])")),
    ("an object's literal", _validation(expression="Object{}.a == 1")),
    ("a patch's literal", _validation(expression="JSONPatch{op: 'add'}.op == 'add'")),
    ("a constant that fails", _validation(expression="object.a.matches('(')")),
    ("a duration that is none", _validation(expression="duration('no') == duration('1s')")),
)
BINDINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing", {"policyName": None, "validationActions": None}),
    ("a policy's name", {"policyName": "A_"}),
    ("an action", {"validationActions": ["No"]}),
    ("actions twice", {"validationActions": ["Deny", "Deny"]}),
    ("deny and warn", {"validationActions": ["Deny", "Warn"]}),
    ("params of nothing", {"paramRef": {}}),
    ("params without an action", {"paramRef": {"name": "a"}}),
    ("params' action", {"paramRef": {"name": "a", "parameterNotFoundAction": "No"}}),
    ("params by both", {"paramRef": {**REFERENCE, "selector": {}}}),
    ("params' name", {"paramRef": {**REFERENCE, "name": "a/b"}}),
    ("params' selector", {"paramRef": {"parameterNotFoundAction": "Deny", "selector": {"matchLabels": {"a b": "c"}}}}),
    ("resources", {"matchResources": {"resourceRules": [{}], "matchPolicy": "No"}}),
)


def _applies(source: str, **more: Any) -> dict[str, Any]:
    return {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": source}, **more}]}


def _patches(source: str, **more: Any) -> dict[str, Any]:
    return {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": source}, **more}]}


MUTATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a constant", _patches("[JSONPatch{op: string(null), path: '/a'}]")),
    ("nothing", {"matchConstraints": None, "mutations": None, "reinvocationPolicy": None}),
    ("no rules", {"matchConstraints": {}}),
    ("a failure policy", {"failurePolicy": "No"}),
    ("a reinvocation policy", {"reinvocationPolicy": "No"}),
    ("deletes", _rules(operations=["CREATE", "DELETE"])),
    ("an operation", _rules(operations=["READ"])),
    ("params of a wrong kind", {"paramKind": {"apiVersion": "v1", "kind": "A.B"}}),
    ("a condition's syntax", {"matchConditions": [{"name": "a", "expression": "object.x ="}]}),
    ("a condition of an object", {"matchConditions": [{"name": "a", "expression": "Object{} != null"}]}),
    ("a variable's fault", _variables(("a", "no"))),
    ("a variable's object", _variables(("a", "Object{}"))),
    ("a patch's type", {"mutations": [{"patchType": "No"}]}),
    ("no patch's type", {"mutations": [{}]}),
    ("nothing to apply", {"mutations": [{"patchType": "ApplyConfiguration"}]}),
    ("no patch", {"mutations": [{"patchType": "JSONPatch"}]}),
    ("a patch to apply", _applies("Object{}", jsonPatch={"expression": "[]"})),
    ("a patch and an object", _patches("[JSONPatch{}]", applyConfiguration={"expression": "no"})),
    ("an empty expression", _applies(" ")),
    ("an empty patch", _patches(" ")),
    ("a syntax", _applies(" Object{ ")),
    ("no object", _applies("{'a': 1}")),
    ("a part of an object", _applies("Object.spec{}")),
    ("a dyn object", _applies("dyn(Object{})")),
    ("an unknown type", _applies("Other{}")),
    ("an unknown name", _applies("Object{a: no}")),
    ("params without a kind for them", _applies("Object{a: params.a}")),
    ("params", {**_applies("Object{a: params.a}"), "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
    ("variables", {**_applies("Object{a: variables.a}"), **_variables(("a", "1"))}),
    ("an authorizer", _applies("Object{a: authorizer.path('/x').check('get').allowed()}")),
    ("one of two objects", _applies("true ? Object{} : Object{a: 1}")),
    ("two kinds of objects", _applies("true ? Object{} : Object.spec{}")),
    ("a list of objects", _patches("[Object{}]")),
    ("a list of nothing", _patches("[]")),
    ("a list of maps", _patches("[{'op': 'add'}]")),
    ("a field of a patch", _patches("[JSONPatch{no: 1}]")),
    ("a type of a patch's field", _patches("[JSONPatch{op: 1}]")),
    ("an operation of a patch", _patches("[JSONPatch{op: 'no'}]")),
    ("a patch of two lists", _patches("[JSONPatch{op: 'add'}] + [JSONPatch{op: 'remove'}]")),
    ("a patch of a list", _patches("object.l.map(x, JSONPatch{op: 'add', value: x})")),
    ("an escaped key", _patches("[JSONPatch{op: 'add', path: jsonpatch.escapeKey('a')}]")),
    ("an escaped number", _patches("[JSONPatch{op: 'add', path: jsonpatch.escapeKey(1)}]")),
    (
        "an escaped key in a condition",
        {"matchConditions": [{"name": "a", "expression": "jsonpatch.escapeKey('a') == ''"}]},
    ),
    ("a function of the next version", _applies("Object{a: includes([1], [1])}")),
)
MUTATING_BINDINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing", {"policyName": None}),
    ("a policy's name", {"policyName": "A_"}),
    ("params of nothing", {"paramRef": {}}),
    ("deletes", {"matchResources": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}}),
)
UPDATES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("a condition", {}, {"matchConditions": [{"name": "a", "expression": "no"}]}),
    ("a validation", {}, _validation(expression="no")),
    ("a new variable", {}, {**_variables(("a", "no"))}),
    ("nothing left", {}, {"validations": []}),
    ("another policy", {"failurePolicy": "Fail"}, {"failurePolicy": "Ignore"}),
    (
        "params that conditions need",
        {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConditions": [{"name": "a", "expression": "params != null"}],
        },
        {"paramKind": None},
    ),
)


MUTATING_UPDATES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("an object", {}, _applies("no")),
    ("a condition", {}, {"matchConditions": [{"name": "a", "expression": "no"}]}),
    ("nothing left", {}, {"mutations": []}),
    ("another policy", {}, {"reinvocationPolicy": "IfNeeded"}),
)


async def ask(api: Api) -> dict[str, Any]:
    """Return the status and the causes of each answer."""
    facts: dict[str, Any] = {}

    async def note(name: str, method: str, kind: str, spec: dict[str, Any], revision: str = "") -> str:
        plural, whole = KINDS[kind]
        path = f"{ADMISSION}/{plural}"
        metadata = {"name": NAME, **({"resourceVersion": revision} if revision else {})}
        spec = {field: value for field, value in {**whole, **spec}.items() if value is not None}
        body = {"metadata": metadata, "spec": spec}
        where = path if method == "POST" else f"{path}/{metadata['name']}"
        answer = await api.call(method, where, body)
        causes = [
            [cause.get("field", ""), cause["message"]] for cause in answer.json.get("details", {}).get("causes", [])
        ]
        if name:
            facts[name] = [answer.status, causes]
        return answer.revision if answer.status < 300 else ""

    tables = (POLICIES, BINDINGS, MUTATIONS, MUTATING_BINDINGS)
    for kind, table in zip(KINDS, tables, strict=True):
        for name, spec in table:
            if await note(f"{kind}: {name}", "POST", kind, spec):
                await api.delete(f"{ADMISSION}/{KINDS[kind][0]}/{NAME}")
    for name, before, after in UPDATES:
        revision = await note("", "POST", "policy", before)
        await note(f"update: {name}", "PUT", "policy", {**before, **after}, revision)
        await api.delete(f"{ADMISSION}/validatingadmissionpolicies/{NAME}")
    for name, before, after in MUTATING_UPDATES:
        revision = await note("", "POST", "mutating", before)
        await note(f"mutating update: {name}", "PUT", "mutating", {**before, **after}, revision)
        await api.delete(f"{ADMISSION}/mutatingadmissionpolicies/{NAME}")
    return facts


def read_facts() -> dict[str, Any]:
    """Return what a real server said."""
    return recording.read_facts(FILE)


async def _record() -> None:
    async with recording.real_server() as api:
        recording.write_facts(FILE, await ask(api))


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
