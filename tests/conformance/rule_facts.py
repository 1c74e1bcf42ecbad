"""What a real server says of rules in CRDs (``x-kubernetes-validations``), and of objects that keep and break them.

``DEFINITIONS`` are schemas with rules, of which some are wrong; ``VALUES`` are fields with rules, and the values that
each is tried with: one as a new object, two as a change. Both are written by hand. ``rule_facts.json`` has the answers;
it is written by ``python -m tests.conformance.rule_facts``, which asks a real server.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from multidict import CIMultiDict

from tests.conformance import recording
from tests.conformance.target import CRDS, Api, widget_crd

FILE = Path(__file__).with_name("rule_facts.json")
Json = dict[str, Any]
Take = Callable[[list[Any]], Sequence[Any]]
RULES = "x-kubernetes-validations"
TEXT: Json = {"type": "string"}
SHORT: Json = {**TEXT, "maxLength": 9}
NUMBER: Json = {"type": "integer"}
OPEN: Json = {"x-kubernetes-preserve-unknown-fields": True}
# The type of an object has a name that is made up each time.
_MADE_UP = re.compile(r"selfType\d*")
ODD = ("namespace", "in", "a-b", "a.b/c", "__x", "true", "9a", "a b", "for")


def rule(*tests: str, **more: Any) -> Json:
    return {RULES: [{"rule": test, **more} for test in tests]}


def struct(*rules: str, **fields: Any) -> Json:
    return {"type": "object", "properties": fields, **(rule(*rules) if rules else {})}


def listed(item: Json, *rules: str, **more: Any) -> Json:
    return {"type": "array", "items": item, **(rule(*rules) if rules else {}), **more}


def mapped(value: Json, *rules: str, **more: Any) -> Json:
    return {"type": "object", "additionalProperties": value, **(rule(*rules) if rules else {}), **more}


def keyed(item: Json, *rules: str, keys: tuple[str, ...] = ("name",), **more: Any) -> Json:
    kind = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return listed({**item, "required": list(keys)}, *rules, **kind, **more)


SET: Json = {"x-kubernetes-list-type": "set"}
FORMATS = ("date-time", "date", "duration", "byte", "uuid", "int32")
EMBEDDED: Json = {"type": "object", "x-kubernetes-embedded-resource": True, **OPEN}
ITEM: Json = struct(name=TEXT, v=NUMBER)

# Of a value that is of another type than its schema's, since it was stored with another schema.
OF_ITEMS = (
    "self.map(x, x).size() == 2",
    "self.map(x, x == 1, x).size() == 1",
    "self.filter(x, true).size() == 2",
    "self.filter(x, x == 1).size() == 1",
    "self.exists_one(x, x == 1)",
    "self.all(x, x == 1)",
    "self.exists(x, x == 2)",
    "self[?0].hasValue() && self[?1].hasValue()",
    "self[1] == 1",
    "[self[0], self[1]].size() == 2",
    "self.sum() == 1",
    "self.min() == 1",
    "self.max() == 1",
    "self.isSorted()",
    "self.indexOf(1) == 0",
    "self.indexOf(2) == 0",
    "self.lastIndexOf(1) == 0",
    "self.sort().size() == 2",
    "self.sortBy(x, 1).size() == 2",
    "self.distinct().size() == 2",
    "self.reverse()[0] == 1",
    "self.reverse().size() == 2",
    "self.slice(0, 1).size() == 1",
    "self.slice(0, 2) == []",
    "[self].flatten().size() == 2",
    "self.first().hasValue()",
    "self.last().value() == 1",
    "self + self == [1]",
    "(self + [2]).size() == 3",
    "self == self",
    "self == [1]",
    "self != [1, 2]",
    "1 in self",
    "2 in self",
    "sets.contains(self, [1])",
    "sets.intersects(self, [2])",
    "sets.equivalent(self, self)",
    "'%s'.format([self]) == ''",
    "self.transformList(k, v, v).size() == 2",
    "self.transformMap(k, v, v).size() == 2",
    "self.transformMapEntry(k, v, {string(k): v}).size() == 2",
    "self.transformMap(k, v, k == 7, v).size() == 0",
    "self.all(k, v, v == 1)",
    "self.exists(k, v, v == 2)",
    "self.existsOne(k, v, v == 2)",
    "self.size() == 2",
    "type(self) == list",
)
OF_VALUES = (
    "self == {'b': 1}",
    "self.map(k, self[k]).size() == 2",
    "self.map(k, k).size() == 2",
    "self.transformList(k, v, v).size() == 2",
    "self.transformMap(k, v, v).size() == 2",
    "self.transformMap(k, v, k == 'b', v).size() == 1",
    "self.transformMap(k, v, v == 1, v).size() == 1",
    "self.exists(k, v, v == 1)",
    "self.all(k, v, v == 2)",
    "self.?a.hasValue()",
    "self.?a.orValue(1) == 1",
    "self[?'a'].optMap(v, 1).orValue(2) == 3",
    "self.?b.hasValue()",
    "has(self.a)",
    "'a' in self",
    "{'x': self['a']}.size() == 1",
    "{'x': self}.size() == 1",
    "'%s'.format([self]) == ''",
)
# The first of two errors is reported, although a value that cannot be read is an error only where it is used.
OF_TWO_ERRORS = (
    "self['a'] == self['x']",
    "self['x'] == self['a']",
    "self['a'] != self['x']",
    "self['a'] < self['x']",
    "self['a'] + self['x'] == ''",
    "self['a'] == string(1 / 0)",
    "self['a'] == 'b' + self['x']",
    "self['a'].contains(self['x'])",
    "self['a'].matches(self['x'])",
    "self['a'].indexOf(self['x']) == 0",
    "self['a'].replace(self['x'], 'b') == ''",
    "self['a'].replace('b', self['x'], 1) == ''",
    "'b'.replace(self['a'], self['x']) == ''",
    "self['a'].split(self['x'], 2 / 0).size() == 1",
    "self['a'] in [self['x']]",
    "self['a'] in {'b': self['x']}",
    "self['a'] in self",
    "self['a'] in {'b': 1}",
    "self['a'] in {}",
    "self['a'] in dyn([]).map(x, x)",
    "self['a'] in ['b']",
    "[self['a'], self['x']].size() == 1",
    "{self['a']: self['x']}.size() == 1",
    "{'b': self['a'], self['x']: 'c'}.size() == 1",
    "self[self['a']] == self['x']",
    "self[self['x']] == self['a']",
    "self[?self['a']].hasValue()",
    "[self['b']][int(self['a'])] == self['x']",
    "optional.of(self['a']).orValue(self['x']) == ''",
    "optional.none().orValue(self['a']) == self['x']",
    "(true ? self['a'] : 'b') == self['x']",
    "self['a'] == self['x'] && self['x'] == 'b'",
    "self['a'] == self['x'] || self['x'] == 'b'",
    "self['a'] == self['x'] || true",
    "['b'].exists(x, self['a'] == self['x'])",
    "['b'].map(x, self['a'] == self['x']).size() == 1",
    "sets.contains([self['a']], [self['x']])",
)
OF_ITSELF = (
    "[self].size() == 1",
    "{'a': self}.size() == 1",
    "{self: 'a'}.size() == 1",
    "[1, self, 2 / 0].size() == 1",
    "[2 / 0, self].size() == 1",
    "[[self]].size() == 1",
    "[1].map(x, self).size() == 1",
    "[1].map(x, self == 1, x).size() == 1",
    "[1, 2].map(x, x == 1 ? self : 2 / 0).size() == 1",
    "[1, 2].map(x, x == 1 ? 2 / 0 : self).size() == 1",
    "[1].transformMap(k, v, self).size() == 1",
    "optional.of(self).hasValue()",
    "optional.ofNonZeroValue(self).hasValue()",
    "optional.of(1).or(optional.of(self)).hasValue()",
    "optional.none().orValue(self) == 1",
    "optional.of(1).orValue(self) == 1",
    "[?optional.of(self)].size() == 1",
    "true ? self == 1 : true",
    "(true ? self : 1) == 1",
    "(false ? self : 1) == 2",
    "self in [1]",
    "self in [1, self]",
    "1 in [1, self]",
    "dyn(self) == dyn('x')",
    "type(self) == int",
    "string(self) == 'x'",
    "'%d'.format([self]) == 'x'",
    "'%s'.format(['a']) == 'x'",
    "[self, 2].min() == 2",
    "self == 1 || true",
    "self == 1 && false",
    "-self == 1",
    "self + 1 == 1",
)
# Of an old value and a new one, one of which is null or has a null.
OF_TWO = ("oldSelf == self", "self == oldSelf", "!(oldSelf == self)", "!(self == oldSelf)", "oldSelf != self")
OF_INSTANT = "self == timestamp('2020-01-01T00:00:00Z')"
# Some are instants, some have the format, some neither.
INSTANTS = (
    *("x", "", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00", "2020-01-01t00:00:00z", "2020-01-01T00:00:00,5Z"),
    *("2020-01-01T0:00:00Z", "2020-01-01T00:00:00x5Z", "2020-01-01T24:00:00+24:00", "2020-01-02T00:00:00+24:00"),
    *("2020-01-02T01:00:00+24:60", "2020-01-01T00:00:00+25:00", "2020-01-01T00:00:00+00:61", "2020-13-01T00:00:00Z"),
    *("2020-02-30T00:00:00Z", "2020-01-01T00:60:00Z", "2020-01-01T00:00:60Z", "2020-01-01", "2020-01-01T00:00:00é"),
    *("2020-01-01T00:00:00.", "2020-01-01 00:00:00Z", "2019-12-31T23:30:00-00:30", '2020-01-01T00:00"', "T00:00:00Z"),
)
DATES = (
    "x",
    "",
    "2020-01-01",
    "2020-1-1",
    "2020-13-01",
    "2020-02-30",
    "2020-01-01T00:00:00Z",
    "2020-00-01",
    "0000-01-01",
)
SPANS = ("x", "", "1s", "1 s", "s", "1 second", "1S", "1x", "0")

DEFINITIONS: dict[str, Json] = {
    "right": struct("self.a == 'x'", a=TEXT),
    "no rule": struct(a={**TEXT, **rule("")}),
    "a blank rule": struct(a={**TEXT, **rule(" ")}),
    "no syntax": struct("self.a ==", a=TEXT),
    "no such field": struct("self.b == 'x'", a=TEXT),
    "two faults": struct("self.b == 'x' && self.c", a=TEXT),
    "no bool": struct("self.a", a=TEXT),
    "dyn": struct("self.a", a={"x-kubernetes-int-or-string": True}),
    "a wrong type": struct("self.a > 1", a=TEXT),
    "another object": struct("self.a == self.b", a=struct(x=TEXT), b=struct(x=TEXT)),
    "a name of nothing": struct("other.a", a=TEXT),
    "no such function": struct("self.a.nothing()", a=TEXT),
    "metadata": struct("self.metadata.name == 'x'", "self.metadata.generateName == ''", "self.kind == self.apiVersion"),
    "more metadata": struct("self.metadata.labels == {}"),
    "lines": struct(a={**TEXT, **rule("self ==\n'x'")}),
    "lines with a message": struct(a={**TEXT, **rule("self ==\n'x'", message="m")}),
    "a message of lines": struct(a={**TEXT, **rule("self == 'x'", message="m\nn")}),
    "a blank message": struct(a={**TEXT, **rule("self == 'x'", message="  ")}),
    "a blank message expression": struct(a={**TEXT, **rule("self == 'x'", messageExpression=" ")}),
    "a message expression": struct(a={**TEXT, **rule("self == 'x'", messageExpression="'not ' + self")}),
    "a wrong message expression": struct(a={**TEXT, **rule("self == 'x'", messageExpression="1")}),
    "no message expression": struct(a={**TEXT, **rule("self == 'x'", messageExpression="1 +")}),
    **{
        f"a constant: {source}": struct(a={**SHORT, **rule(source)})
        for source in (
            "string(null) != 'a'",
            "int('a') == 1 && int(1e30) == 1",
            "false && bool('x')",
            "self.find('(') == ''",
            "self.matches('(')",
            "timestamp('x') > timestamp('y')",
            ".namespace == 'x'",
        )
    },
    **{
        f"a constant of a message: {source}": struct(a={**SHORT, **rule("self == 'x'", messageExpression=source)})
        for source in ("string(null)", "'a' + string(int('a'))", "string(timestamp('x'))")
    },
    "both wrong": struct(a={**TEXT, **rule("self == ", messageExpression="1 +")}),
    **{
        f"reason {name}": struct(a={**TEXT, **rule("self == 'x'", reason=name)})
        for name in (
            "FieldValueInvalid",
            "FieldValueForbidden",
            "FieldValueRequired",
            "FieldValueDuplicate",
            "Other",
            "",
        )
    },
    **{
        f"path {path}": struct(
            a={**struct(b=TEXT, l=listed(TEXT), m=mapped(struct(c=TEXT))), **rule("true", fieldPath=path)}
        )
        for path in (
            ".b",
            "b",
            ".c",
            ".b.c",
            "['b']",
            ".m.k",
            ".m['k'].c",
            ".m.k.d",
            ".l[0]",
            ".l",
            ".",
            "[b]",
            "['b'",
            "['b'].",
            " ",
            ".b\n",
            ".m['a\\'b'].c",
            ".m['\\z']",
        )
    },
    "optional without old": struct(a={**TEXT, **rule("self == 'x'", optionalOldSelf=True)}),
    "not optional without old": struct(a={**TEXT, **rule("self == 'x'", optionalOldSelf=False)}),
    "optional": struct(a={**TEXT, **rule("oldSelf.hasValue() || true", optionalOldSelf=True)}),
    "optional as if it were not": struct(a={**TEXT, **rule("self == oldSelf", optionalOldSelf=True)}),
    "not optional as if it were": struct(a={**TEXT, **rule("oldSelf.hasValue()")}),
    "old in a list": struct(a=listed({**TEXT, **rule("self == oldSelf")}, maxItems=5)),
    "old in a set": struct(a=listed({**TEXT, **rule("self == oldSelf"), "maxLength": 5}, maxItems=5, **SET)),
    "old in a keyed list": struct(a=keyed({**ITEM, **rule("self == oldSelf")}, maxItems=5)),
    "old in a list of a keyed list": struct(
        a=keyed(struct(name=TEXT, l=listed({**NUMBER, **rule("self == oldSelf")})), maxItems=3)
    ),
    "old in a map": struct(a=mapped({**TEXT, **rule("self == oldSelf"), "maxLength": 5}, maxProperties=5)),
    "old of a list": struct(a=listed(NUMBER, "self == oldSelf", maxItems=5)),
    "an open object": struct(a={"type": "object", **OPEN, **rule("has(self.x)")}),
    "an open object's field": struct(a={**struct("self.x == ''", x=TEXT), **OPEN}),
    "anything": struct(a={**OPEN, **rule("true")}),
    "a list of anything": struct(a=listed(OPEN, "size(self) > 1")),
    "a map of anything": struct(a=mapped(OPEN, "size(self) > 1")),
    "a field of anything": struct("has(self.a)", a=OPEN),
    "an empty object": struct("has(self.a)", a={"type": "object"}),
    "an embedded object": struct("self.a.metadata.name == self.a.kind", a=EMBEDDED),
    "an embedded object's own": struct(a={**EMBEDDED, **rule("self.metadata.name == self.apiVersion")}),
    "an embedded object's more": struct(a={**EMBEDDED, **rule("self.spec == ''")}),
    **{
        f"escaped {name}": struct(f"self.{name} == 1", **dict.fromkeys(ODD, NUMBER))
        for name in (
            "namespace",
            "__namespace__",
            "__in__",
            "a__dash__b",
            "a__dot__b__slash__c",
            "__underscores__x",
            "__true__",
            "__for__",
            "9a",
            "__x",
        )
    },
    "rules below an odd name": struct(**{"a b": struct("self.x == 1", x=NUMBER), "9a": {**TEXT, **rule("self")}}),
    **{
        f"format {name}": struct("self.a == self.a", f"type(self.a) == type({made})", a={**TEXT, "format": name})
        for name, made in zip(
            FORMATS, ("timestamp('')", "timestamp('')", "duration('')", "b''", "''", "1"), strict=True
        )
    },
    "format, as text": struct("self.a == 'x'", a={**TEXT, "format": "date-time"}),
    "a number": struct("self.a == 1", a={"type": "number"}),
    "a number of a text": struct("double(self.a) == 1.0", a=TEXT),
    "nullable": struct("self.a == null", a={**TEXT, "nullable": True}),
    "nullable in a list": struct("self.a.all(x, x == null)", a=listed({**TEXT, "nullable": True})),
    "required": {**struct("self.a == 'x'", a=TEXT), "required": ["a"]},
    "literals of two types": struct("self.a in [1, 'x']", a=NUMBER),
    "a bad pattern": struct("self.a.matches('(')", a=TEXT),
    "below what is wrong": struct("self.nothing", a={**TEXT, **rule("self.nothing", message="m\nn")}),
    "beside what is wrong": struct(
        a={**TEXT, **rule("self == 'x'", message="m\nn")}, b={**TEXT, **rule("self.nothing")}
    ),
    "where there is no structure": struct("self.nothing", a={}),
    "in allOf": {**struct(a=TEXT), "allOf": [struct("self.a == 'x'", a={})]},
    "in metadata": struct(metadata=struct("self.name == 'x'", name=TEXT)),
    "default that keeps": struct(a={**TEXT, "default": "x", **rule("self == 'x'")}),
    "default that breaks": struct(a={**TEXT, "default": "y", **rule("self == 'x'", message="be x")}),
    "default that breaks below": struct(a={**struct(b={**TEXT, **rule("self == 'x'")}), "default": {"b": "y"}}),
    "default as a change": struct(a={**NUMBER, "default": 1, **rule("self > oldSelf")}),
    "default as a new value": struct(a={**NUMBER, "default": 1, **rule("oldSelf.hasValue()", optionalOldSelf=True)}),
    "default that fails": struct(a={**NUMBER, "default": 0, **rule("1 / self > 0")}),
    "a constant": struct(a={**TEXT, **rule("true", "false", "1 == 1")}),
    "no rules": struct(a={**TEXT, RULES: []}),
    "what only the next version may use": struct(a=listed(TEXT, "self.includes('x')", maxItems=9)),
}
COSTS: dict[str, Json] = {
    "size of a list": struct(a=listed(TEXT, "size(self) > 1")),
    "all of a list": struct(a=listed(TEXT, "self.all(x, x == 'x')")),
    "all of a limited list": struct(a=listed({**TEXT, "maxLength": 10}, "self.all(x, x == 'x')", maxItems=10)),
    "all of all": struct(a=listed(NUMBER, "self.all(x, self.all(y, x == y))")),
    "all of all, limited": struct(a=listed(NUMBER, "self.all(x, self.all(y, x == y))", maxItems=100)),
    "three": struct(a=listed(NUMBER, "self.all(x, self.all(y, self.all(z, x == y && y == z)))", maxItems=200)),
    "three, a little": struct(
        a=listed(NUMBER, "self.all(x, self.all(y, self.all(z, x == y && y == z)))", maxItems=110)
    ),
    "pattern": struct(a={**TEXT, **rule("self.matches('^[a-z]+$')")}),
    "pattern, limited": struct(a={**TEXT, "maxLength": 100, **rule("self.matches('^[a-z]+$')")}),
    "pattern in a list": struct(a=listed({**TEXT, **rule("self.matches('^[a-z]+$')")})),
    "pattern in a limited list": struct(
        a=listed({**TEXT, "maxLength": 100, **rule("self.matches('^[a-z]+$')")}, maxItems=9)
    ),
    "in a map": struct(a=mapped({**TEXT, **rule("self.contains('x')")})),
    "in a limited map": struct(a=mapped({**TEXT, "maxLength": 9, **rule("self.contains('x')")}, maxProperties=9)),
    "deep": struct(a=listed(listed(listed({**NUMBER, **rule("self > 1")}, maxItems=9), maxItems=9), maxItems=9)),
    "deep without end": struct(a=listed(listed(listed({**NUMBER, **rule("self > 1")})))),
    "many": struct(a=listed(TEXT, *["self.all(x, x.startsWith('ab'))"] * 12, maxItems=2000)),
    "many dear ones": struct(
        **{
            f"a{n}": listed({**TEXT, "maxLength": 200}, *["self.all(x, x.contains('ab'))"] * 4, maxItems=2000)
            for n in range(6)
        }
    ),
    "message": struct(a=listed(TEXT, **rule("true", messageExpression="self.join(',')"))),
    "message, limited": struct(
        a=listed({**TEXT, "maxLength": 9}, maxItems=9, **rule("true", messageExpression="self.join(',')"))
    ),
    "unique": struct(a=listed({**TEXT, "maxLength": 64}, "self.all(x, self.exists_one(y, x == y))", maxItems=64)),
    "whole objects": struct("self.a == oldSelf.a", a=struct(b=TEXT, c=listed(TEXT))),
    "characters of four bytes": struct(
        a={**TEXT, "maxLength": 10_000, **rule("self.matches('^[a-z]+$') && self == 'a'")}
    ),
    "characters of four bytes in a list": struct(
        a=listed({**TEXT, "maxLength": 9_999}, "self.all(x, x.matches('^[a-z]+$') && x.contains('abc'))", maxItems=900)
    ),
    "enum": struct("self.a.contains(self.a)", a={**TEXT, "enum": ["x", "yy"]}),
    "map and filter": struct(a=listed(ITEM, "self.map(x, x.name).filter(x, x != '').size() > 1", maxItems=50)),
    "sets": struct(a=listed({**TEXT, "maxLength": 9}, "sets.contains(self, ['a', 'b'])", maxItems=50)),
    "strings": struct(
        a={**TEXT, "maxLength": 99, **rule("self.split('x').join('y').lowerAscii() == self.replace('a', 'b')")}
    ),
}

Steps = tuple[tuple[Any, ...], ...]
LAND: Json = struct("self.x <= self.y", x=NUMBER, y=NUMBER)
PAIRS: Steps = (
    ([],),
    ([{"name": "a", "v": 1}],),
    ([{"name": "a", "v": 1}], [{"name": "a", "v": 1}, {"name": "b", "v": 2}]),
    ([{"name": "a", "v": 1}, {"name": "b", "v": 2}], [{"name": "b", "v": 2}, {"name": "a", "v": 1}]),
    ([{"name": "a", "v": 1}, {"name": "b", "v": 2}], [{"name": "b", "v": 3}]),
)
TEXTS: Steps = (("x",), ("y",), ("",), ("x", "y"), ("y", "y"), ("y", "z"))
LISTS: Steps = (([],), (["a"],), (["a", "b"], ["b", "a"]), (["a", "b"], ["a"]), (["a"], ["a", "b"]))
# Some 900 000 units for a text of 90 000 characters, quickly.
DEAR = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all(x, !self.contains('{'y' * 100}'))"
VALUES: dict[str, tuple[Json, Steps]] = {
    **{
        f"a list that is none: {source}": (
            listed(listed(NUMBER, maxItems=4), source, maxItems=4),
            (([None, [1]], [None, [1]]),),
        )
        for source in (
            "self.exists(x, x.sort() == [1]) || true",
            "self.all(x, x.sortBy(y, y) == [1]) && false",
            "self.exists(x, [x].distinct().size() == 1)",
            "self.exists(x, dyn(x).sort() == [1])",
            "self.exists(x, x.isSorted())",
            "[1].exists(x, dyn(x).distinct() == [1]) || true",
            "[0].exists(x, [1 / x].sort() == [1]) || true",
        )
    },
    "text": ({**TEXT, **rule("self == 'x'")}, TEXTS),
    "message": ({**TEXT, **rule("self == 'x'", message=" be x ")}, TEXTS),
    **{
        f"reason {name}": ({**TEXT, **rule("self == 'x'", reason=name, message="be x")}, TEXTS[:2])
        for name in ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
    },
    "reason of an object": ({**LAND, **rule("self.x < 1", reason="FieldValueDuplicate")}, (({"x": 1},),)),
    "path": ({**LAND, **rule("self.x < 1", fieldPath=".x")}, (({"x": 1},), ({"x": 0},))),
    "path of a map": (mapped(NUMBER, **rule("self.all(k, self[k] > 1)", fieldPath="['a']")), (({"a": 1},),)),
    "own message": ({**TEXT, **rule("self == 'x'", messageExpression="'not ' + self", message="m")}, TEXTS[:3]),
    "own message that fails": (
        {**TEXT, **rule("self == 'x'", messageExpression="'abc'.charAt(9)", message="m")},
        TEXTS[:2],
    ),
    "own message without words": ({**TEXT, **rule("self == 'x'", messageExpression="' '", message="m")}, TEXTS[:2]),
    "own message of lines": ({**TEXT, **rule("self == 'x'", messageExpression="'a\\nb'", message="m")}, TEXTS[:2]),
    "own message of the old": ({**TEXT, **rule("self == oldSelf", messageExpression="oldSelf + ' to ' + self")}, TEXTS),
    "own message of an optional": (
        {**TEXT, **rule("!oldSelf.hasValue()", messageExpression="oldSelf.value()", message="m", optionalOldSelf=True)},
        TEXTS,
    ),
    "several": ({**NUMBER, **rule("self > 1", "self > 2", "self > 3")}, ((1,), (2,), (3,), (4,), (1, 1), (1, 2))),
    "number": ({"type": "number", **rule("self > 1.5")}, ((1,), (2,), (1.25,), (1e21,), (2.0,))),
    "whole number": ({**NUMBER, **rule("self / 2 == 1")}, ((2,), (4,), (2.0,))),
    "bool": ({"type": "boolean", **rule("self")}, ((True,), (False,))),
    "either": (
        {"x-kubernetes-int-or-string": True, **rule("type(self) == int ? self < 5 : self.endsWith('%')")},
        ((4,), (5,), ("5%",), ("5",)),
    ),
    "either without a look": ({"x-kubernetes-int-or-string": True, **rule("self < 5")}, ((4,), (5,), ("5",))),
    "either, as a message": (
        {"x-kubernetes-int-or-string": True, **rule("self.matches('^a')")},
        ((4,), ("a",), ("b",)),
    ),
    "missing": (struct("self.x == 1", x=NUMBER), (({},), ({"x": 1},))),
    "has": (
        struct("!has(self.x) || self.x == 1", x={**NUMBER, "nullable": True}),
        (({},), ({"x": None},), ({"x": 2},)),
    ),
    "null": (
        {**TEXT, "nullable": True, **rule("self == 'x'")},
        ((None,), ("y",), (None, "y"), ("y", None), ("y", "y")),
    ),
    "null in a list": (listed({**TEXT, "nullable": True}, "self.exists(x, dyn(x) == null)"), ((["a"],), ([None],))),
    "null in a map": (
        mapped({**TEXT, "nullable": True}, "!('a' in self) || dyn(self.a) == null"),
        (({"a": None},), ({"a": "b"},)),
    ),
    "two": (
        LAND,
        (
            ({"x": 1, "y": 2},),
            ({"x": 2, "y": 1},),
            ({"x": 2, "y": 1}, {"x": 2, "y": 1}),
            ({"x": 2, "y": 1}, {"x": 3, "y": 1}),
        ),
    ),
    "division": ({**NUMBER, **rule("1 / self > 0")}, ((0,), (1,), (2,), (0, 0))),
    "overflow": ({**NUMBER, **rule("self + 9223372036854775807 > 0")}, ((0,), (1,))),
    "index": (listed(TEXT, "self[1] == 'b'"), LISTS),
    "old": ({**TEXT, **rule("self == oldSelf")}, TEXTS),
    "old, optional": ({**TEXT, **rule("oldSelf.hasValue() || self == 'x'", optionalOldSelf=True)}, TEXTS),
    "old, orValue": ({**TEXT, **rule("oldSelf.orValue('x') == self", optionalOldSelf=True)}, TEXTS),
    "old, of a list": (listed(TEXT, "self == oldSelf"), LISTS),
    "old, of a set": (listed(TEXT, "self == oldSelf", **SET), LISTS),
    "old, union of a set": (listed(TEXT, "self + oldSelf == oldSelf", "size(self + oldSelf) < 3", **SET), LISTS),
    "old, of a keyed list": (keyed(ITEM, "self == oldSelf"), PAIRS),
    "old, union of a keyed list": (keyed(ITEM, "self + oldSelf == self", "size(self + oldSelf) < 2"), PAIRS),
    "old, of its items": (
        keyed({**ITEM, **rule("self.v >= oldSelf.v")}),
        (*PAIRS, ([{"name": "a", "v": 3}], [{"name": "a", "v": 1}])),
    ),
    "old, of items with a new key": (keyed({**ITEM, **rule("oldSelf.hasValue()", optionalOldSelf=True)}), PAIRS),
    "old, of two keys": (
        keyed(struct("self.w == oldSelf.w", name=TEXT, v=NUMBER, w=SHORT), keys=("name", "v"), maxItems=9),
        (
            (
                [{"name": "a", "v": 1, "w": "x"}, {"name": "a", "v": 2, "w": "y"}],
                [{"name": "a", "v": 2, "w": "y"}, {"name": "a", "v": 1, "w": "z"}],
            ),
        ),
    ),
    "old, of a map": (
        mapped({**SHORT, **rule("self == oldSelf")}, maxProperties=9),
        (({"a": "1"}, {"a": "2", "b": "3"}), ({"a": "1"}, {"b": "3"})),
    ),
    "item": (listed({**TEXT, **rule("self == 'x'")}), ((["x", "y"],), (["y"], ["y"]), (["y"], ["y", "x"]))),
    "item with a key": (
        keyed({**ITEM, **rule("self.v > 1")}),
        (
            ([{"name": "a", "v": 1}], [{"name": "b", "v": 5}, {"name": "a", "v": 1}]),
            ([{"name": "a", "v": 1}], [{"name": "a", "v": 0}]),
        ),
    ),
    "value of a map": (mapped({**NUMBER, **rule("self > 1")}), (({"a": 1, "b c": 2},), ({"a": 1}, {"a": 1, "b": 5}))),
    "deep": (
        struct(a=listed(mapped(struct(b={**NUMBER, **rule("self > 1")}), maxProperties=9), maxItems=9)),
        (({"a": [{"k": {"b": 1}}]},),),
    ),
    "odd names": (
        struct(
            "self.__namespace__ == 1",
            "self.namespace == 1",
            "self.__in__ == 1",
            "self.a__dash__b == 1",
            "self.a__dot__b__slash__c == 1",
            "self.__underscores__x == 1",
            "has(self.__true__)",
            **dict.fromkeys(ODD, NUMBER),
        ),
        ((dict.fromkeys(ODD, 1),), (dict.fromkeys(ODD, 2),), ({},)),
    ),
    "below an odd name": (
        struct(**{"a b": struct("self.x == 1", x=NUMBER), "9a": {**TEXT, **rule("self == 'x'")}}),
        (({"a b": {"x": 2}, "9a": "y"},),),
    ),
    "time": (
        {
            **TEXT,
            "format": "date-time",
            **rule("self > timestamp('2020-01-01T00:00:00Z') && self.getFullYear() < 2030"),
        },
        (
            ("2021-01-01T00:00:00Z",),
            ("2019-12-31T23:59:59+01:00",),
            ("2021-01-01T00:00:00.123456789Z",),
            ("2021-01-01t00:00:00z",),
            ("",),
        ),
    ),
    "date": (
        {**TEXT, "format": "date", **rule("self > timestamp('2020-01-01T00:00:00Z')")},
        (("2020-01-02",), ("2019-01-01",), ("x",)),
    ),
    "duration": (
        {**TEXT, "format": "duration", **rule("self > duration('1m')")},
        (("2m",), ("30s",), ("1h",), ("2 days",), ("1d",), ("-5m",)),
    ),
    "bytes": ({**TEXT, "format": "byte", **rule("self == b'abc'")}, (("YWJj",), ("YWI=",), ("+/+/",))),
    "open": (
        {**struct("!has(self.x) || self.x == 'x'", x=TEXT), **OPEN},
        (({"x": "x", "z": 1},), ({"x": "y", "z": 1},)),
    ),
    "open, compared": (
        {**struct("self == oldSelf", x=TEXT), **OPEN},
        (({"z": 1}, {"z": 1}), ({"z": 1}, {"z": 2}), ({"x": "x"}, {"x": "y"})),
    ),
    "open, unchanged": (
        {**struct("self.x == 'x'", x=TEXT), **OPEN},
        (({"x": "y"}, {"x": "y"}), ({"x": "y", "z": 1}, {"x": "y", "z": 1})),
    ),
    "all together too dear": ({**TEXT, "maxLength": 90_000, **rule(*[DEAR] * 12)}, (("x" * 90_000,), ("x",))),
    "one too dear": ({**TEXT, "maxLength": 90_000, **rule(f"{DEAR} && {DEAR}", "false")}, (("x" * 90_000,), ("x",))),
    "embedded": (
        {**EMBEDDED, **rule("self.metadata.name.startsWith('a')", "self.kind == 'Pod'")},
        (
            ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ab"}},),
            ({"apiVersion": "v1", "kind": "Job", "metadata": {"name": "b"}},),
        ),
    ),
    "embedded without a name": (
        {**EMBEDDED, **rule("has(self.metadata.name)")},
        (({"apiVersion": "v1", "kind": "Pod"},),),
    ),
    "dear": (
        listed(NUMBER, "self.all(x, self.all(y, x >= 0 && y >= 0 && x + y >= 0))", maxItems=400),
        ((list(range(300)),),),
    ),
    "very dear": (
        listed(listed(NUMBER, "self.all(x, self.all(y, x >= y))", maxItems=150), maxItems=10),
        (([[0] * 150] * 10,),),
    ),
    "a wrong type": (struct("self.x == 1", x=NUMBER), (({"x": "1"},), ({"x": 1, "y": 1},))),
    "an item that cannot be read": (
        listed(NUMBER, *OF_ITEMS, maxItems=9),
        (([1, "x"], [1, "x"]), (["x", 1], ["x", 1])),
    ),
    "a text that cannot be read": (
        listed(TEXT, "self.join() == 'a'", "'%s'.format([self]) == ''", "self.exists(x, x == 'a')", maxItems=9),
        ((["a", 1], ["a", 1]), ([1, "a"], [1, "a"])),
    ),
    "a value that cannot be read": (mapped(NUMBER, *OF_VALUES, maxProperties=9), (({"a": "x", "b": 1},) * 2,)),
    "two errors": (mapped({**TEXT, "maxLength": 3}, *OF_TWO_ERRORS, maxProperties=3), (({"a": 1, "b": "c"},) * 2,)),
    "what cannot be read": ({**NUMBER, **rule(*OF_ITSELF)}, (("x", "x"),)),
    "a null and a list": (
        listed(listed(TEXT, maxItems=3, nullable=True), *OF_TWO, maxItems=3),
        (([["a"]], [None]), ([None], [["a"]]), ([None], [None, None]), ([None, ["a"]], [None, ["b"]])),
    ),
    "a null and an object": (
        mapped({**struct(a=TEXT), "nullable": True}, *OF_TWO, maxProperties=3),
        (({"x": {"a": "b"}}, {"x": None}), ({"x": None}, {"x": {"a": "b"}})),
    ),
    "a null and a text": (listed({**TEXT, "nullable": True}, *OF_TWO, maxItems=3), ((["a"], [None]), ([None], ["a"]))),
    "an instant": ({**TEXT, "format": "date-time", **rule(OF_INSTANT)}, tuple((each, each) for each in INSTANTS)),
    "a date": ({**TEXT, "format": "date", **rule(OF_INSTANT)}, tuple((each, each) for each in DATES)),
    "a span": ({**TEXT, "format": "duration", **rule("self == duration('1s')")}, tuple((each, each) for each in SPANS)),
    "too long": ({**TEXT, "maxLength": 3, **rule("self == 'x'")}, (("abcd",), ("abc",))),
    "no enum": ({**TEXT, "enum": ["x", "y"], **rule("self == 'x'")}, (("z",), ("y",))),
    "a pattern": ({**TEXT, "pattern": "^x", **rule("self == 'x'")}, (("z",), ("xy",))),
    "a minimum": ({**NUMBER, "minimum": 5, **rule("self == 6")}, ((4,), (5,), (4, 4))),
    "required": ({**struct("self.x == 1", x=NUMBER, y=NUMBER), "required": ["y"]}, (({"x": 2},), ({"x": 2, "y": 1},))),
    "defaulted": (struct("self.x == 1", x={**NUMBER, "default": 1}), (({},), ({"x": 2},))),
    "constant": ({**TEXT, **rule("false")}, (("x",), ("x", "x"), ("x", "y"))),
    "nothing of the old": ({**TEXT, **rule("true || self == oldSelf")}, TEXTS),
}


async def ask_definitions(api: Api, take: Take = list) -> Json:
    """Ask a server about every schema; nothing is stored."""
    answers: Json = {}
    for name, schema in take([*(DEFINITIONS | COSTS).items()]):
        answer = await api.post(f"{CRDS}?dryRun=All", widget_crd(api.group(), schema=schema, status=False, scale=False))
        answers[f"CRD: {name}"] = _seen(answer.status, answer.json)
    return answers


def crd_of_values(group: str) -> Json:
    """Return a CRD with all fields that values are tried in; by its second version, anything can be stored."""
    fields = {name: field for name, (field, _) in VALUES.items()}
    crd = widget_crd(group, schema=struct(spec=struct(**fields)), versions=("v1", "v2"), status=False, scale=False)
    crd["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": {"type": "object", **OPEN}}
    return crd


async def ask_values(api: Api, path: str, take: Take = list) -> Json:
    """Ask a server about every value; what is to be changed is stored before, where no rule is asked."""
    answers: Json = {}
    for name, (_, tried) in take([*VALUES.items()]):
        for place, steps in enumerate(tried):
            widget = api.widget(f"w{len(answers)}", {name: steps[-1]})
            if len(steps) == 1:
                answer = await api.post(f"{path}?dryRun=All", widget)
            else:
                before = {**widget, "apiVersion": f"{api.group()}/v2", "spec": {name: steps[0]}}
                stored = await api.created(path.replace("/v1/", "/v2/"), before)
                metadata = {**widget["metadata"], "resourceVersion": stored.json["metadata"]["resourceVersion"]}
                where = f"{path}/{metadata['name']}?dryRun=All"
                answer = await api.call("PUT", where, {**widget, "metadata": metadata})
            warnings = cast("CIMultiDict[str]", answer.headers).getall("Warning", [])
            answers[f"{name} {place}"] = _seen(answer.status, answer.json, warnings)
    return answers


def _seen(status: int, body: Json, warnings: Sequence[str] = ()) -> list[Any]:
    told: list[str] = []
    if status >= 300:
        causes = body.get("details", {}).get("causes")
        told = sorted(f"{cause['field']}: {cause['message']}" for cause in causes) if causes else [body["message"]]
    return [status, *(_MADE_UP.sub("selfType", each) for each in told), *sorted(warnings)]


async def ask(api: Api, take: Take = list) -> Json:
    """Ask a server about everything, or about a part of the schemas and of the values."""
    definitions = await ask_definitions(api, take)
    return {**definitions, **await ask_values(api, await api.define(crd_of_values(api.group())), take)}


def read_facts() -> Json:
    return recording.read_facts(FILE)


async def _record() -> None:
    async with recording.real_server() as api:
        recording.write_facts(FILE, await ask(api))


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
