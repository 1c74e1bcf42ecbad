"""Random schemas with random rules, and values for them.

A rule is made by types: a part of a value is named, compared, counted, looked through. Some rules are then broken, by a
token that is lost, doubled or another one. ``chance`` decides everything, so that a seed can be tried again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from lab.conformance.fuzz.templates import EMBEDDED, OPTIONAL_OLD, ORDERED, ROOT, TEMPLATES, WORDS

Json = dict[str, Any]
T = TypeVar("T")
RULES: Final = "x-kubernetes-validations"
NAMES: Final = ("a", "b", "c", "namespace", "x-y", "a.b", "in", "__z")
ESCAPED: Final = {"x-y": "x__dash__y", "a.b": "a__dot__b", "in": "__in__", "__z": "__underscores__z"}
TIMES: Final = ("2020-01-01T00:00:00Z", "2021-06-30T12:30:00.5+02:00", "1999-12-31T23:59:59Z")
SPANS: Final = ("1h", "30s", "1h30m", "-5m", "0", "2d")
TEXTS: Final = {
    "date-time": TIMES,
    "duration": SPANS,
    "byte": ("YWI=", "YQ==", ""),
    "date": ("2020-02-29", "2021-01-01"),
}
MADE: Final = {"date-time": "timestamp", "date": "timestamp", "duration": "duration", "byte": "bytes"}
METHODS: Final = (
    "startsWith({})", "endsWith({})", "contains({})", "matches('^[a-c]*$')", "matches('[0-9]')", "isFormat({})",
)  # fmt: skip
OPEN: Final = "x-kubernetes-preserve-unknown-fields"
STRAY: Final[tuple[Any, ...]] = (1, "x", [], {}, True, None, 1.5)
TOKEN: Final = re.compile(r"'[^']*'|[A-Za-z_]\w*|\d+|\S")
TOKENS: Final = (
    "self",
    "oldSelf",
    "1",
    "'a'",
    "==",
    "&&",
    "(",
    ")",
    ".",
    "+",
    "!",
    "[0]",
    "null",
    "size",
    "x",
    "?",
    "2.5",
)


@dataclass(frozen=True)
class Chance:
    """Makes schemas, rules and values of one random source."""

    source: random.Random

    def one(self, choices: Iterable[T]) -> T:
        return self.source.choice([*choices])

    def some(self, choices: Iterable[T], most: int) -> list[T]:
        found = [*choices]
        return self.source.sample(found, min(most, len(found)))

    def often(self, likely: float) -> bool:
        return self.source.random() < likely

    def schema(self, depth: int = 3) -> Json:
        """Return a schema, limited so that rules on it are cheap."""
        kinds = ["string", "string", "integer", "number", "boolean", "format", "either"]
        kinds += ["open"] if self.often(0.2) else []  # rules on them are expensive
        whole = ["object", "object", "array", "array", "map", "keyed", "set", "embedded"]
        kind = self.one(kinds if depth == 0 else [*kinds, *whole])
        nullable = {"nullable": True} if self.often(0.15) else {}
        match kind:
            case "string":
                limit = {"enum": list(WORDS[:5])} if self.often(0.2) else {"maxLength": 10}
                return {"type": "string", **limit, **nullable}
            case "format":
                return {"type": "string", "format": self.one(TEXTS), **nullable}
            case "either":
                return {"x-kubernetes-int-or-string": True, "maxLength": 10}
            case "object":
                fields = {name: self.schema(depth - 1) for name in self.source.sample(NAMES, self.source.randint(1, 3))}
                required = {"required": [next(iter(fields))]} if self.often(0.3) else {}
                is_open = {"x-kubernetes-preserve-unknown-fields": True} if self.often(0.15) else {}
                atomic = {"x-kubernetes-map-type": self.one(("atomic", "granular"))} if self.often(0.15) else {}
                return {"type": "object", "properties": fields, **required, **is_open, **atomic, **nullable}
            case "open":
                typed = {"type": "object"} if self.often(0.3) else {}
                return {"x-kubernetes-preserve-unknown-fields": True, **typed, **nullable}
            case "embedded":
                return self._embedded(depth)
            case "array":
                return {"type": "array", "items": self.schema(depth - 1), "maxItems": 4, **nullable}
            case "map":
                return {"type": "object", "additionalProperties": self.schema(depth - 1), "maxProperties": 4}
            case "set":
                item = {"type": self.one(("string", "integer")), "maxLength": 5}
                if item["type"] == "integer":
                    del item["maxLength"]
                return {"type": "array", "items": item, "maxItems": 4, "x-kubernetes-list-type": "set"}
            case "keyed":
                fields = {"name": {"type": "string", "maxLength": 5}, "v": self.schema(0)}
                item = {"type": "object", "properties": fields, "required": ["name"]}
                keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
                return {"type": "array", "items": item, "maxItems": 4, **keyed}
            case _:
                return {"type": kind, **nullable}

    def _embedded(self, depth: int) -> Json:
        named = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}
        fields = {"spec": self.schema(depth - 1)} | ({"metadata": named} if self.often(0.3) else {})
        is_open = {"x-kubernetes-preserve-unknown-fields": True} if self.often(0.7) else {}
        return {"type": "object", "x-kubernetes-embedded-resource": True, "properties": fields, **is_open}

    def root_rules(self) -> list[Json]:
        """Return rules on a whole object."""
        return [{"rule": self.one(ROOT)} for _ in range(self.source.randint(0, 2))]

    def with_rules(self, schema: Json, *, many: int = 2) -> Json:
        """Return a schema with rules at some of its nodes."""
        schema = dict(schema)
        if "properties" in schema:
            parts = schema["properties"].items()
            is_whole = "x-kubernetes-embedded-resource" in schema
            schema["properties"] = {
                name: child if is_whole and name == "metadata" else self.with_rules(child, many=1)
                for name, child in parts
            }
        for word in ("items", "additionalProperties"):
            if word in schema:
                schema[word] = self.with_rules(schema[word], many=1)
        rules = [self.rule(schema) for _ in range(self.source.randint(many - 1, many))]
        return {**schema, RULES: rules} if rules else schema

    def rule(self, schema: Json) -> Json:
        """Return a rule on a schema."""
        named = {"self": schema}
        compares = self.often(0.2)
        rule: Json = {"rule": self.test({**named, "oldSelf": schema} if compares else named, 3)}
        if self.often(0.3):
            rule["message"] = self.one(("broken", " of words ", "x"))
        if self.often(0.15):
            rule["messageExpression"] = self.one(("'is ' + ", "")) + self.text(named, 1)
        if self.often(0.2):
            rule["reason"] = self.one(("FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"))
        if self.often(0.1) and "properties" in schema:
            rule["fieldPath"] = self.field_path(schema)
        if self.often(0.08):
            rule |= {"rule": self.one(OPTIONAL_OLD), "optionalOldSelf": True}
        return rule

    def field_path(self, schema: Json) -> str:
        """Return the path of a field below a schema."""
        name = self.one(schema["properties"])
        plain = name.isalpha() and self.often(0.5)
        path, below = f".{name}" if plain else f"['{name}']", schema["properties"][name]
        return path + (self.field_path(below) if "properties" in below and self.often(0.5) else "")

    # Expressions, by the type that they have.

    def test(self, scope: Json, depth: int) -> str:
        """Return an expression that is true or false."""
        if depth == 0:
            return self.compared(scope, depth)
        match self.source.randint(0, 9):
            case 0 | 1:
                return f"{self.test(scope, depth - 1)} {self.one(('&&', '||'))} {self.test(scope, depth - 1)}"
            case 2:
                return f"!({self.test(scope, depth - 1)})"
            case 3:
                return f"({self.test(scope, depth - 1)} ? {self.test(scope, 0)} : {self.test(scope, 0)})"
            case 4 | 5:
                return self.looped(scope, depth)
            case 6:
                return f"{self.text(scope, depth - 1)}.{self.one(METHODS[:5]).format(self.literal('string'))}"
            case _:
                return self.compared(scope, depth)

    def compared(self, scope: Json, depth: int) -> str:
        """Return a comparison of a part of a value."""
        path, schema, guard = self.part(scope)
        kind = type_of(schema)
        if "x-kubernetes-embedded-resource" in schema:
            return guard + self.one(EMBEDDED).format(path)
        if kind == "object":
            return guard + self.of_object(path, schema)
        if self.often(0.5) and kind in TEMPLATES:
            ordered = kind == "list" and type_of(schema["items"]) in ("int", "string", "double")
            return guard + self.one(ORDERED if ordered and self.often(0.5) else TEMPLATES[kind]).format(path)
        if kind in ("list", "map") and self.often(0.6):
            return f"{guard}size({path}) {self.one(('<', '>=', '==', '!='))} {self.source.randint(0, 3)}"
        if kind == "bool":
            return f"{guard}{path}"
        if kind in ("list", "map"):
            return f"{guard}{path} == {path}"
        if kind == "dyn":
            return guard + self.one(
                (
                    f"type({path}) == int",
                    f"(type({path}) == string ? {path}.size() > 1 : {path} < 3)",
                    f"{path} == {self.literal(self.one(('int', 'string')))}",
                    f"{path} < 2",
                    f"string({path}) != 'a'",
                )
            )
        sign = self.one(("==", "!=", "<", "<=", ">", ">=")) if kind != "bytes" else self.one(("==", "!="))
        return f"{guard}{self.computed(path, kind)} {sign} {self.value(scope, kind, depth)}"

    def of_object(self, path: str, schema: Json) -> str:
        """Return what is asked of an object's fields."""
        if not schema.get("properties"):
            return f"{path} == {path}"
        name = self.one(schema["properties"])
        field, kind = ESCAPED.get(name, name), type_of(schema["properties"][name])
        is_scalar = kind in ("int", "string", "double", "bool", "timestamp", "duration")
        literal = self.literal(kind) if is_scalar else ""
        return self.one(
            (
                f"has({path}.{field})",
                f"has({path}.{field})",
                f"{path}.?{field}.hasValue()",
                f"{path}.?{field}.orValue({literal}) == {literal}" if is_scalar else f"!has({path}.{field})",
                f"{path}.?{field}.optMap(v, v == {literal}).orValue(false)" if is_scalar else f"{path} != null",
            )
        )

    def computed(self, path: str, kind: str) -> str:
        """Return a part, or something that is computed of it."""
        if self.often(0.6):
            return path
        choices = {
            "int": (f"{path} + 1", f"{path} * 2", f"{path} / 2", f"{path} % 3", f"-{path}", f"10 / {path}"),
            "double": (f"{path} + 1.5", f"{path} / 2.0", f"-{path}"),
            "string": (f"{path} + 'a'", f"{path}.lowerAscii()", f"{path}.replace('a', 'b')", f"{path}.charAt(0)"),
            "timestamp": (f"({path} + duration('1h'))",),
            "duration": (f"({path} + duration('1h'))",),
        }
        return self.one(choices.get(kind, (path,)))

    def value(self, scope: Json, kind: str, depth: int) -> str:
        """Return an expression of a scalar type: a part of a value, or a literal."""
        found = [each for each in self.parts(scope) if type_of(each[1]) == kind and not each[2]]
        return self.one(found)[0] if found and depth and self.often(0.4) else self.literal(kind)

    def text(self, scope: Json, depth: int) -> str:
        path, schema, _ = self.part(scope)
        kind = type_of(schema)
        if kind == "string":
            return path
        return (
            f"string({path})" if kind in ("int", "double", "timestamp", "duration", "dyn") else self.literal("string")
        )

    def looped(self, scope: Json, depth: int) -> str:
        """Return a look through a list or a map."""
        found = [each for each in self.parts(scope) if type_of(each[1]) in ("list", "map")]
        if not found:
            return self.compared(scope, depth)
        path, schema, guard = self.one(found)
        name = f"x{depth}"
        if type_of(schema) == "map":
            inner = {**scope, name: {"type": "string"}}
            return f"{guard}{path}.{self.one(('all', 'exists', 'exists_one'))}({name}, {self.test(inner, depth - 1)})"
        inner = {**scope, name: schema["items"]}
        loop = f"{path}.{self.one(('all', 'exists', 'exists_one'))}({name}, {self.test(inner, depth - 1)})"
        more = (
            loop, loop, loop,
            f"{path}.filter({name}, {self.test(inner, depth - 1)}).size() > {self.source.randint(0, 2)}",
            f"{path}.map({name}, {self.test(inner, 0)}).all(y, y)",
            f"{path}[{self.source.randint(0, 2)}] == {path}[0]",
        )  # fmt: skip
        return guard + self.one(more)

    def part(self, scope: Json) -> tuple[str, Json, str]:
        """Return a part of what can be named: how it is named, its schema, and what must hold before."""
        return self.one(self.parts(scope))

    def parts(self, scope: Json) -> list[tuple[str, Json, str]]:
        found: list[tuple[str, Json, str]] = []
        waiting: list[tuple[str, Json, str]] = [(name, schema, "") for name, schema in scope.items()]
        while waiting:
            path, schema, guard = waiting.pop()
            found.append((path, schema, guard))
            for name, child in schema.get("properties", {}).items():
                below = f"{path}.{ESCAPED.get(name, name)}"
                more = f"!has({below}) || " if self.often(0.8) else ""
                waiting.append((below, child, f"{guard}{more}"))
        return found

    def literal(self, kind: str) -> str:
        match kind:
            case "int":
                return str(self.source.randint(-1, 5))
            case "double":
                return self.one(("1.5", "0.0", "-2.25", "3.0"))
            case "timestamp":
                return f"timestamp('{self.one(TIMES)}')"
            case "duration":
                return f"duration('{self.one(SPANS[:4])}')"
            case "bytes":
                return "b'ab'"
            case "bool":
                return self.one(("true", "false"))
            case _:
                return json.dumps(self.one(WORDS), ensure_ascii=False)

    def broken(self, rule: Json) -> Json:
        """Return a rule with a token lost, doubled, or another one."""
        word = "messageExpression" if "messageExpression" in rule and self.often(0.3) else "rule"
        tokens = list(TOKEN.finditer(rule[word]))
        chosen, text = self.one(tokens), rule[word]
        other = self.one(("", chosen[0] * 2, self.one(TOKENS), f" {self.one(TOKENS)} "))
        return {**rule, word: text[: chosen.start()] + other + text[chosen.end() :]}

    # Values.

    def of(self, schema: Json) -> Any:
        """Return a value of a schema; now and then one that is not."""
        if schema.get("nullable") and self.often(0.2):
            return None
        if self.often(0.01):
            return self.one(STRAY)
        kind = type_of(schema)
        if "x-kubernetes-embedded-resource" in schema:
            return self._whole(schema)
        if kind == "dyn" or (kind == "object" and "properties" not in schema):
            scalars: tuple[Any, ...] = (0, 1, 5, "a", "10%", "")
            anything: tuple[Any, ...] = (*scalars, {}, {"a": 1}, ["a", 2]) if OPEN in schema else scalars
            return self.one(anything)
        if "format" in schema:
            return self.one(TEXTS[schema["format"]])
        match kind:
            case "string":
                return self.one(schema.get("enum", WORDS))
            case "int":
                return self.source.randint(-1, 5)
            case "double":
                return self.one((0, 1, 1.5, -2.25, 3.0, 1e3))
            case "bool":
                return self.often(0.5)
            case "map":
                return {name: self.of(schema["additionalProperties"]) for name in self._some(("a", "ab", "k/1"))}
            case "object":
                unknown = {"unknown": self.one((1, "x"))} if self.often(0.2) else {}
                properties = schema["properties"].items()
                return {name: self.of(child) for name, child in properties if self.often(0.8)} | unknown
            case _:
                return self._items(schema)

    def _whole(self, schema: Json) -> Json:
        """Return an embedded object; now and then something is missing in it."""
        metadata = {"name": self.one(("a", "abc")), "labels": {"a": "b"}} if self.often(0.9) else {"generateName": "a-"}
        parts = {"apiVersion": "v1", "kind": self.one(("Pod", "Node")), "metadata": metadata}
        kept = {name: value for name, value in parts.items() if self.often(0.97)}
        return {**kept, "spec": self.of(schema["properties"]["spec"])}

    def _some(self, names: tuple[str, ...]) -> list[str]:
        return self.source.sample(names, self.source.randint(0, len(names)))

    def _items(self, schema: Json) -> list[Any]:
        item, kind = schema["items"], schema.get("x-kubernetes-list-type")
        if kind == "map":
            return [{**self.of_fields(item), "name": name} for name in self._some(("a", "b", "c"))]
        if kind == "set":
            return self.source.sample(WORDS[:4] if item["type"] == "string" else range(4), self.source.randint(0, 3))
        return [self.of(item) for _ in range(self.source.randint(0, 3))]

    def of_fields(self, schema: Json) -> Json:
        found = self.of(schema)
        return cast("Json", found) if isinstance(found, dict) else {}

    def changed(self, schema: Json, value: Any) -> Any:
        """Return a value that has much in common with another one of its schema."""
        if schema and self.often(0.15):
            return self.of(schema)
        if isinstance(value, dict):
            fields, parts, other = cast("Json", value), schema.get("properties", {}), schema.get("additionalProperties")
            return {name: self.changed(parts.get(name) or other or {}, inner) for name, inner in fields.items()}
        if not isinstance(value, list):
            return value
        items = cast("list[Any]", value)
        if "items" in schema and schema.get("x-kubernetes-list-type") != "set":
            items = [self.changed(schema["items"], inner) for inner in items]
        return items if self.often(0.7) else items[::-1]


def type_of(schema: Json) -> str:
    """Return the type that expressions see."""
    if schema.get("x-kubernetes-int-or-string") or "type" not in schema:
        return "dyn"
    kinds = {"integer": "int", "number": "double", "boolean": "bool", "array": "list"}
    kind: str = schema.get("type", "dyn")
    if kind == "object":
        return "map" if "additionalProperties" in schema else "object"
    return MADE.get(str(schema.get("format", "")), "string") if kind == "string" else kinds.get(kind, kind)


def count(schema: Json) -> int:
    """Return how many rules a schema has."""
    parts = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return len(schema.get(RULES, ())) + sum(count(part) for part in parts if part)
