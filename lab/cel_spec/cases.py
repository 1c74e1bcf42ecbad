"""The specification's tests as cases: an expression, what it may name, and what it must give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from deltaloop import cel, errors
from deltaloop.cel import types
from deltaloop.cel.operators import equal
from lab.cel_spec.textproto import Message, Value, read

PRIMITIVES = {
    "BOOL": types.BOOL,
    "INT64": types.INT,
    "UINT64": types.UINT,
    "DOUBLE": types.DOUBLE,
    "STRING": types.STRING,
    "BYTES": types.BYTES,
}
WELL_KNOWN = {"TIMESTAMP": types.TIMESTAMP, "DURATION": types.DURATION, "ANY": types.DYN}
MESSAGES = {
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Value": types.DYN,
    "google.protobuf.Struct": types.map_of(types.STRING, types.DYN),
    "google.protobuf.ListValue": types.list_of(types.DYN),
}


class NotPlainError(Exception):
    """A test has a value or a type that is no plain one: a message."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test; ``path`` is ``file/section/name``."""

    path: str
    expression: str
    message: Message = field(repr=False)


def cases(folder: Path) -> Iterator[Case]:
    """Return all tests of a folder."""
    for path in sorted(folder.glob("*.textproto")):
        for section in messages(read(path.read_text()), "section"):
            for test in messages(section, "test"):
                name = f"{path.stem}/{text(section, 'name')}/{text(test, 'name')}"
                yield Case(name, text(test, "expr"), test)


def problem(case: Case) -> str:
    """Run a case; say what is wrong, or ""."""
    test = case.message
    try:
        environment = cel.Environment(
            [*cel.DEFAULT_LIBRARIES, *declared_functions(test)],
            variables=declared_variables(test),
            container=text(test, "container"),
            validators=(),
        )
        bindings = {text(entry, "key"): bound(entry) for entry in messages(test, "bindings")}
        expected = wanted(test)
    except NotPlainError as error:
        return f"not plain: {error}"
    source = case.expression
    try:
        if text(test, "disable_check") == "true":
            source = unchecked(environment, source)
        program = environment.compile(source)
        if text(test, "check_only") == "true":
            return typed_problem(test, program.type)
        value = program.evaluate(bindings)
    except (errors.InvalidExpressionError, errors.EvaluationError) as error:
        return "" if expected is ERROR else f"{type(error).__name__}: {error}"
    if expected is ERROR:
        return f"no error but {value!r}"
    if not same(value, expected):
        return f"{value!r} is not {expected!r}"
    return typed_problem(test, program.type)


def same(value: object, expected: object) -> bool:
    """Tell whether a value is the expected one, of the same type; NaN is."""
    if isinstance(value, float) and isinstance(expected, float):
        return value == expected or (math.isnan(value) and math.isnan(expected))
    if type(value) is not type(expected):
        return False
    if isinstance(value, list) and isinstance(expected, list):
        ours, theirs = cast("list[object]", value), cast("list[object]", expected)
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return equal(value, expected)


def unchecked(environment: cel.Environment, source: str) -> str:
    """Return an expression whose types are all found out while it runs only."""
    return cel.unparse(dynamic(environment.parse(source)))


def dynamic(node: cel.Node) -> cel.Node:
    """Put ``dyn()`` around every literal."""
    from deltaloop.cel import syntax

    match node:
        case syntax.Literal():
            return syntax.FunctionCall("dyn", (node,))
        case syntax.Select():
            return syntax.Select(dynamic(node.operand), node.field, node.optional, node.test_only)
        case syntax.FunctionCall():
            target = dynamic(node.target) if node.target is not None else None
            return syntax.FunctionCall(node.function, tuple(map(dynamic, node.arguments)), target)
        case syntax.ListLiteral():
            return syntax.FunctionCall("dyn", (syntax.ListLiteral(tuple(map(dynamic, node.items)), node.optional),))
        case syntax.MapLiteral():
            entries = tuple(
                syntax.MapEntry(dynamic(entry.key), dynamic(entry.value), entry.optional) for entry in node.entries
            )
            return syntax.FunctionCall("dyn", (syntax.MapLiteral(entries),))
        case syntax.Comprehension():
            return syntax.Comprehension(
                node.macro, dynamic(node.operand), node.variables, tuple(map(dynamic, node.bodies))
            )
        case _:
            return node


ERROR = object()


def wanted(test: Message) -> object:
    """Return what a test expects: a value, or ERROR."""
    if "eval_error" in test or "any_eval_errors" in test:
        return ERROR
    if "value" in test:
        return plain(one(test, "value"))
    typed = messages(test, "typed_result")
    if typed and "result" in typed[0]:
        return plain(one(typed[0], "result"))
    return True


def typed_problem(test: Message, found: types.Type) -> str:
    """Say what is wrong with the type that was found, or ""."""
    typed = messages(test, "typed_result")
    if not typed:
        return ""
    try:
        expected = declared(one(typed[0], "deduced_type"))
    except NotPlainError as error:
        return f"not plain: {error}"
    return "" if str(expected) == str(found) else f"type {found} is not {expected}"


def bound(entry: Message) -> object:
    return plain(one(one(entry, "value"), "value"))


def plain(value: Message) -> object:
    """Return a value of the tests as a plain one."""
    ((kind, (content, *_)),) = value.items()
    match kind:
        case "null_value":
            return None
        case "bool_value":
            return content == "true"
        case "int64_value":
            return number(content)
        case "uint64_value":
            return cel.Uint(number(content))
        case "double_value":
            return float(str(content))
        case "string_value":
            return str_of(content)
        case "bytes_value":
            assert isinstance(content, bytes)
            return content
        case "list_value":
            assert isinstance(content, dict)
            return [plain(item) for item in messages(content, "values")]
        case "map_value":
            assert isinstance(content, dict)
            return {plain(one(e, "key")): plain(one(e, "value")) for e in messages(content, "entries")}
        case "type_value":
            return types.NAMED.get(str_of(content)) or types.Type("named", str_of(content))
        case "object_value":
            assert isinstance(content, dict)
            return well_known(content)
        case _:
            raise NotPlainError(kind)


def well_known(content: Message) -> object:
    """Return an instant or a span of time."""
    ((name, (inside, *_)),) = content.items()
    assert isinstance(inside, dict)
    seconds, nanos = (int(text(inside, part) or "0") for part in ("seconds", "nanos"))
    if name == "[type.googleapis.com/google.protobuf.Timestamp]":
        return cel.Timestamp(seconds * 10**9 + nanos)
    if name == "[type.googleapis.com/google.protobuf.Duration]":
        return cel.Duration(seconds * 10**9 + nanos)
    raise NotPlainError(name)


def declared_variables(test: Message) -> dict[str, types.Type]:
    found = {text(entry, "key"): types.DYN for entry in messages(test, "bindings")}
    for declaration in messages(test, "type_env"):
        if "ident" in declaration:
            found[text(declaration, "name")] = declared(one(one(declaration, "ident"), "type"))
    return found


def declared_functions(test: Message) -> list[cel.Library]:
    found: dict[str, tuple[cel.Overload, ...]] = {}
    for declaration in messages(test, "type_env"):
        for function in messages(declaration, "function"):
            found[text(declaration, "name")] = tuple(
                cel.Overload(
                    text(overload, "overload_id"),
                    tuple(declared(parameter) for parameter in messages(overload, "params")),
                    declared(one(overload, "result_type")),
                    lambda *_: None,
                    is_method=text(overload, "is_instance_function") == "true",
                )
                for overload in messages(function, "overloads")
            )
    return [cel.Library("declared", found)] if found else []


def declared(message: Message) -> types.Type:
    """Return a type of the tests."""
    ((kind, (content, *_)),) = message.items()
    match kind:
        case "primitive":
            return PRIMITIVES[str(content)]
        case "well_known":
            return WELL_KNOWN[str(content)]
        case "wrapper":
            return types.wrapper_of(PRIMITIVES[str(content)])
        case "null":
            return types.NULL
        case "dyn":
            return types.DYN
        case "message_type":
            if str_of(content) in MESSAGES:
                return MESSAGES[str_of(content)]
        case "type":
            assert isinstance(content, dict)
            return types.type_of(declared(content)) if content else types.TYPE
        case "type_param":
            return types.Type("param", str_of(content))
        case "list_type":
            assert isinstance(content, dict)
            return types.list_of(declared(one(content, "elem_type")))
        case "map_type":
            assert isinstance(content, dict)
            return types.map_of(declared(one(content, "key_type")), declared(one(content, "value_type")))
        case "abstract_type":
            assert isinstance(content, dict)
            name = text(content, "name")
            parameters = tuple(declared(parameter) for parameter in messages(content, "parameter_types"))
            return types.Type("opaque", name, parameters)
        case _:
            pass
    raise NotPlainError(f"{kind} {content!r}")


def messages(message: Message, name: str) -> list[Message]:
    return [value for value in message.get(name, []) if isinstance(value, dict)]


def one(message: Message, name: str) -> Message:
    return messages(message, name)[0]


def text(message: Message, name: str) -> str:
    found = message.get(name)
    return str_of(found[0]) if found else ""


def str_of(value: Value) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def number(value: Value) -> int:
    return int(str(value), 0)
