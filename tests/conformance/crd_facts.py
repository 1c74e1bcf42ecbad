"""Which CustomResourceDefinitions a real server takes, and what it says of the others.

``CASES`` are written by hand: each is what is special about one CRD. ``crd_facts.json`` has for each case the status of
the answer and the causes, or the message where there are none; it is written by
``python -m tests.conformance.crd_facts``, which asks a real server.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from tests.conformance import recording

FILE = Path(__file__).with_name("crd_facts.json")
GROUP = "facts.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# The real server shows some values as Go has them, with all that is not set.
_WHOLE = re.compile(r"""(?<=Invalid value: )[\[{].*(?=: (only \[|must have|must contain))""")
Json = dict[str, Any]

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer"}
NUMBER: Json = {"type": "number"}
TRUTH: Json = {"type": "boolean"}
OBJECT: Json = {"type": "object"}
OPEN: Json = {"x-kubernetes-preserve-unknown-fields": True}
ANY: Json = {"x-kubernetes-int-or-string": True}
EMBEDDED: Json = {**OBJECT, "x-kubernetes-embedded-resource": True}


def array(items: Any = TEXT, **more: Any) -> Json:
    return {"type": "array", "items": items, **{key.replace("__", "-"): value for key, value in more.items()}}


def obj(**properties: Any) -> Json:
    return {**OBJECT, "properties": properties}


def keyed(items: Json, *keys: str, **more: Any) -> Json:
    return array(items, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [*keys], **more})


def list_set(items: Json) -> Json:
    return array(items, **{"x-kubernetes-list-type": "set"})


def webhook(**more: Any) -> Json:
    service = {"name": "s", "namespace": "n"}
    config = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    return {"conversion": {"strategy": "Webhook", "webhook": {**config, **more}}}


def column(**more: Any) -> Json:
    return {"additionalPrinterColumns": [{"name": "c", "type": "string", "jsonPath": ".spec.a", **more}]}


def scale(**more: Any) -> Json:
    paths = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}
    return {"subresources": {"scale": {**paths, **more}}}


def selectable(*paths: Any, **properties: Any) -> Json:
    fields: list[Json] = [path if isinstance(path, dict) else {"jsonPath": path} for path in paths]
    return {"schema": {"openAPIV3Schema": obj(**(properties or {"a": TEXT}))}, "selectableFields": fields}


KEY: Json = {**obj(k=TEXT), "required": ["k"]}

# Schemas of the field ``a``.
FIELDS: dict[str, Any] = {
    "string": TEXT,
    "no type": {},
    "no type, properties": {"properties": {"b": TEXT}},
    "an unknown type": {"type": "text"},
    "the type null": {"type": "null"},
    "a list of types": {"type": ["string"]},
    "open": OPEN,
    "open object": {**OBJECT, **OPEN},
    "open array": {**array(OBJECT), **OPEN},
    "open array of open": {**array({**OBJECT, **OPEN}), **OPEN},
    "open string": {**TEXT, **OPEN},
    "open boolean": {**TRUTH, **OPEN},
    "open integer": {**WHOLE, **OPEN},
    "not open": {**OBJECT, "x-kubernetes-preserve-unknown-fields": False},
    "open int-or-string": {**ANY, **OPEN},
    "int-or-string": ANY,
    "int-or-string string": {**TEXT, **ANY},
    "int-or-string integer": {**WHOLE, **ANY},
    "int-or-string object": {**OBJECT, **ANY},
    "int-or-string anyOf": {**ANY, "anyOf": [WHOLE, TEXT]},
    "int-or-string anyOf the other way": {**ANY, "anyOf": [TEXT, WHOLE]},
    "int-or-string anyOf with more": {**ANY, "anyOf": [{**WHOLE, "minimum": 1}, TEXT]},
    "int-or-string anyOf of one": {**ANY, "anyOf": [WHOLE]},
    "int-or-string allOf": {**ANY, "allOf": [{"anyOf": [WHOLE, TEXT]}, {"minLength": 1}]},
    "int-or-string allOf second": {**ANY, "allOf": [{"minLength": 1}, {"anyOf": [WHOLE, TEXT]}]},
    "int-or-string oneOf": {**ANY, "oneOf": [WHOLE, TEXT]},
    "anyOf of types without int-or-string": {**OPEN, "anyOf": [WHOLE, TEXT]},
    "int-or-string false": {**TEXT, "x-kubernetes-int-or-string": False},
    "int-or-string pattern": {**ANY, "pattern": "^[0-9]+$"},
    "int-or-string embedded": {**EMBEDDED, **ANY},
    "additionalProperties false": {**OBJECT, "additionalProperties": False},
    "additionalProperties true": {**OBJECT, "additionalProperties": True},
    "additionalProperties null": {**OBJECT, "additionalProperties": None},
    "additionalProperties empty": {**OBJECT, "additionalProperties": {}},
    "additionalProperties schema": {**OBJECT, "additionalProperties": TEXT},
    "additionalProperties text": {**OBJECT, "additionalProperties": "x"},
    "additionalProperties and properties": {**obj(b=TEXT), "additionalProperties": TEXT},
    "additionalProperties true and properties": {**obj(b=TEXT), "additionalProperties": True},
    "additionalProperties false and properties": {**obj(b=TEXT), "additionalProperties": False},
    "additionalProperties and empty properties": {**obj(), "additionalProperties": TEXT},
    "additionalProperties on a string": {**TEXT, "additionalProperties": TEXT},
    "properties on a string": {**TEXT, "properties": {"b": TEXT}},
    "array without items": {"type": "array"},
    "array with items null": {"type": "array", "items": None},
    "array with empty items": array({}),
    "array with a list of items": array([TEXT]),
    "array with an empty list of items": array([]),
    "array with items true": array(True),
    "items on an object": {**OBJECT, "items": TEXT},
    "items without type": array({"minLength": 1}),
    "array of arrays": array(array()),
    "array of arrays without items": array({"type": "array"}),
    "nullable": {**TEXT, "nullable": True},
    "nullable null": {**TEXT, "nullable": None},
    "unique items": array(TEXT, uniqueItems=True),
    "unique items false": array(TEXT, uniqueItems=False),
    "$ref": {"$ref": "#/definitions/x"},
    "$ref empty": {**TEXT, "$ref": ""},
    "$schema": {**TEXT, "$schema": "x"},
    "id": {**TEXT, "id": "x"},
    "id empty": {**TEXT, "id": ""},
    "definitions": {**TEXT, "definitions": {"x": TEXT}},
    "definitions empty": {**TEXT, "definitions": {}},
    "dependencies": {**TEXT, "dependencies": {"x": ["y"]}},
    "patternProperties": {**OBJECT, "patternProperties": {"x": TEXT}},
    "additionalItems": array(TEXT, additionalItems=True),
    "additionalItems false": array(TEXT, additionalItems=False),
    "an unknown keyword": {**TEXT, "contentEncoding": "x"},
    "an unknown keyword in items": array({**TEXT, "contentEncoding": "x"}),
    "external docs": {**TEXT, "externalDocs": {"url": "x"}},
    "const": {**TEXT, "const": "x"},
    # numbers of a schema
    "minimum of a string": {**TEXT, "minimum": 1},
    "minLength of a number": {**NUMBER, "minLength": 1},
    "minLength a text": {**TEXT, "minLength": "1"},
    "minLength a fraction": {**TEXT, "minLength": 1.5},
    "minLength 1.0": {**TEXT, "minLength": 1.0},
    "minLength negative": {**TEXT, "minLength": -1},
    "minLength above maxLength": {**TEXT, "minLength": 5, "maxLength": 1},
    "minimum above maximum": {**WHOLE, "minimum": 5, "maximum": 1},
    "minimum a text": {**WHOLE, "minimum": "1"},
    "minimum a fraction": {**WHOLE, "minimum": 0.5},
    "multipleOf zero": {**WHOLE, "multipleOf": 0},
    "multipleOf negative": {**WHOLE, "multipleOf": -1},
    "maximum of 64 bits": {**WHOLE, "maximum": 9223372036854775807},
    "maximum above 64 bits": {**WHOLE, "maximum": 18446744073709551616},
    "maxLength above 64 bits": {**TEXT, "maxLength": 18446744073709551616},
    "exclusive minimum a number": {**WHOLE, "exclusiveMinimum": 1},
    "exclusive minimum alone": {**WHOLE, "exclusiveMinimum": True},
    "enum empty": {**TEXT, "enum": []},
    "enum twice the same": {**TEXT, "enum": ["a", "a"]},
    "enum of another type": {**TEXT, "enum": [1]},
    "enum null": {**TEXT, "enum": [None]},
    "required twice": {**obj(b=TEXT), "required": ["b", "b"]},
    "required unknown": {**obj(b=TEXT), "required": ["c"]},
    "required empty": {**obj(b=TEXT), "required": []},
    "required a text": {**obj(b=TEXT), "required": "b"},
    "an unknown format": {**TEXT, "format": "x"},
    "int32 of a string": {**TEXT, "format": "int32"},
    "format of an object": {**OBJECT, "format": "int32"},
    "minProperties of a string": {**TEXT, "minProperties": 1},
    # nested value validations
    "allOf": {**TEXT, "allOf": [{"minLength": 1}, {"maxLength": 3}]},
    "allOf empty": {**TEXT, "allOf": []},
    "allOf with a type": {**TEXT, "allOf": [TEXT]},
    "allOf with a description": {**TEXT, "allOf": [{"description": "x"}]},
    "allOf with a title": {**TEXT, "allOf": [{"title": "x"}]},
    "allOf with a default": {**TEXT, "allOf": [{"default": "x"}]},
    "allOf with nullable": {**TEXT, "allOf": [{"nullable": True}]},
    "allOf with additionalProperties": {
        **OBJECT,
        "additionalProperties": TEXT,
        "allOf": [{"additionalProperties": {"minLength": 1}}],
    },
    "allOf with additionalProperties true": {
        **OBJECT,
        "additionalProperties": TEXT,
        "allOf": [{"additionalProperties": True}],
    },
    "allOf with additionalProperties false": {
        **OBJECT,
        "additionalProperties": TEXT,
        "allOf": [{"additionalProperties": False}],
    },
    "allOf with open": {**OBJECT, "allOf": [OPEN]},
    "allOf with embedded": {**OBJECT, "allOf": [{"x-kubernetes-embedded-resource": True}]},
    "allOf with int-or-string": {**OPEN, "allOf": [ANY]},
    "allOf with list type": {**array(), "allOf": [{"x-kubernetes-list-type": "set"}]},
    "allOf with map type": {**OBJECT, "allOf": [{"x-kubernetes-map-type": "atomic"}]},
    "allOf with list keys": {**array(KEY), "allOf": [{"x-kubernetes-list-map-keys": ["k"]}]},
    "allOf with rules": {**TEXT, "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]},
    "allOf with unknown property": {**obj(b=TEXT), "allOf": [{"properties": {"c": {"minLength": 1}}}]},
    "allOf with known property": {**obj(b=TEXT), "allOf": [{"properties": {"b": {"minLength": 1}}}]},
    "allOf with property of additionalProperties": {
        **OBJECT,
        "additionalProperties": TEXT,
        "allOf": [{"properties": {"b": {"minLength": 1}}}],
    },
    "allOf with property of an open object": {**OBJECT, **OPEN, "allOf": [{"properties": {"b": {"minLength": 1}}}]},
    "allOf with items": {**array(), "allOf": [{"items": {"minLength": 1}}]},
    "allOf with items of no array": {**OBJECT, "allOf": [{"items": {"minLength": 1}}]},
    "allOf with items as a list": {**array(), "allOf": [{"items": [{"minLength": 1}]}]},
    "allOf with required unknown": {**obj(b=TEXT), "allOf": [{"required": ["c"]}]},
    "allOf with metadata": {**obj(metadata=OBJECT), "allOf": [{"properties": {"metadata": {"minProperties": 1}}}]},
    "not": {**TEXT, "not": {"minLength": 1}},
    "not with a type": {**TEXT, "not": TEXT},
    "not in not": {**obj(b=TEXT), "not": {"not": {"properties": {"b": TEXT}}}},
    "oneOf of required": {**obj(b=TEXT, c=TEXT), "oneOf": [{"required": ["b"]}, {"required": ["c"]}]},
    "anyOf deep": {**obj(b=obj(c=TEXT)), "anyOf": [{"properties": {"b": {"properties": {"d": {"minLength": 1}}}}}]},
    "pattern in anyOf": {**TEXT, "anyOf": [{"pattern": "("}]},
    "pattern in items of anyOf": {**array(), "anyOf": [{"items": {"pattern": "a(?=b)"}}]},
    # patterns
    **{
        f"pattern {pattern}": {**TEXT, "pattern": pattern}
        for pattern in (
            "^[a-z]+$",
            "(",
            ")",
            "[",
            "a**",
            "a++",
            "*",
            "+",
            "?",
            "a{2,1}",
            "a{1001}",
            "(a{1000}){2}",
            "a{,2}",
            "a{2",
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            "(?P<n>a)",
            "(?<n>a)",
            "(?P<n>a)(?P<n>b)",
            "(?P<1>a)",
            "(?P<>a)",
            "(?P=n)",
            "(?P>n)",
            "(?>a)",
            "(?i)a",
            "a(?i)b",
            "(?i:a)",
            "(?x)a",
            "(?U)a+",
            "(?s-m)a",
            "(?-)a",
            "(?i",
            "(?",
            "(?a)",
            r"\pL",
            r"\p{Greek}",
            r"\p{Nope}",
            r"\PN",
            r"\p{^Lu}",
            r"\p",
            r"\pX",
            r"\Q*\E",
            r"\Qa",
            r"\z",
            r"\Z",
            r"\A",
            r"\C",
            r"\d\w\s\D\W\S",
            r"\h",
            r"\x41",
            r"\x{10FFFF}",
            r"\x{110000}",
            r"\x4",
            r"\xg",
            r"\07",
            r"\1",
            r"\8",
            r"\a",
            r"\_",
            r"\é",
            "\\",
            "[a",
            "[z-a]",
            "[a-\\d]",
            "[[:alpha:]]",
            "[[:nope:]]",
            "[^[:^alpha:]]",
            "[]a]",
            "[^]a]",
            "[]",
            "[^]",
            r"[\d-z]",
            "[a-]",
            "[-a]",
            r"[\b]",
            r"[\Q]\E]",
            "[a&&b]",
            "a|b|",
            "|",
            "(|a)*",
            "()*",
            "a*?",
            "a*+",
            "a{0}",
            "a{0,}?",
            "x{2}{3}",
            "(?:x{2}){3}",
            "(x{1000}y{1000})",
            "((a{100}){10}){10}",
            "((((((((((a{2}){2}){2}){2}){2}){2}){2}){2}){2}){2})",
            "\\p{L",
            "\\p{",
            "(?P<n",
            "(?P<a b>x)",
            "^*",
            "$+",
            r"\b+",
            "a{1000}",
            "a{999,1000}",
            "a{1,1001}",
            "(?i)(?",
            "(?i-s:",
        )
    },
    # lists
    "set of strings": list_set(TEXT),
    "set of atomic objects": list_set({**obj(k=TEXT), "x-kubernetes-map-type": "atomic"}),
    "set of objects": list_set(obj(k=TEXT)),
    "set of granular objects": list_set({**obj(k=TEXT), "x-kubernetes-map-type": "granular"}),
    "set of arrays": list_set(array()),
    "set of atomic arrays": list_set(array(**{"x-kubernetes-list-type": "atomic"})),
    "set of sets": list_set(list_set(TEXT)),
    "set of nullable": list_set({**TEXT, "nullable": True}),
    "set of int-or-string": list_set(ANY),
    "set of open": list_set(OPEN),
    "set that is no array": {**TEXT, "x-kubernetes-list-type": "set"},
    "set without a type": {**OPEN, "x-kubernetes-list-type": "set"},
    "atomic list that is an object": {**OBJECT, "x-kubernetes-list-type": "atomic"},
    "an unknown list type": array(**{"x-kubernetes-list-type": "bag"}),
    "an empty list type": array(**{"x-kubernetes-list-type": ""}),
    "keyed": keyed(KEY, "k"),
    "keyed without keys": keyed(KEY),
    "keyed by an unknown key": keyed(KEY, "x"),
    "keyed by a key twice": keyed(KEY, "k", "k"),
    "keyed by an optional key": keyed(obj(k=TEXT), "k"),
    "keyed by a key with a default": keyed(obj(k={**TEXT, "default": "x"}), "k"),
    "keyed by a key with a default null": keyed(obj(k={**TEXT, "default": None}), "k"),
    "keyed by a nullable key": keyed({**obj(k={**TEXT, "nullable": True}), "required": ["k"]}, "k"),
    "keyed by an object": keyed({**obj(k=OBJECT), "required": ["k"]}, "k"),
    "keyed by an array": keyed({**obj(k=array()), "required": ["k"]}, "k"),
    "keyed with nullable items": keyed({**KEY, "nullable": True}, "k"),
    "keyed with items that are strings": keyed(TEXT, "k"),
    "keyed with open items": keyed({**OBJECT, **OPEN}, "k"),
    "keyed without items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    "keyed that is no array": {**OBJECT, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
    "keys without a list type": array(KEY, **{"x-kubernetes-list-map-keys": ["k"]}),
    "keys of a set": {**list_set(TEXT), "x-kubernetes-list-map-keys": ["k"]},
    "map type atomic": {**obj(b=TEXT), "x-kubernetes-map-type": "atomic"},
    "map type of a string": {**TEXT, "x-kubernetes-map-type": "atomic"},
    "map type without a type": {**OPEN, "x-kubernetes-map-type": "atomic"},
    "an unknown map type": {**OBJECT, "x-kubernetes-map-type": "set"},
    # embedded
    "embedded without properties": EMBEDDED,
    "embedded open": {**EMBEDDED, **OPEN},
    "embedded without a type": {"x-kubernetes-embedded-resource": True, **OPEN},
    "embedded string": {**TEXT, "x-kubernetes-embedded-resource": True, **OPEN},
    "embedded with additionalProperties": {**EMBEDDED, "additionalProperties": TEXT, **OPEN},
    "embedded with a wrong kind": {**EMBEDDED, "properties": {"kind": WHOLE}},
    "embedded with a wrong apiVersion": {**EMBEDDED, "properties": {"apiVersion": OBJECT}},
    "embedded with metadata": {**EMBEDDED, "properties": {"metadata": OBJECT}},
    "embedded with metadata as text": {**EMBEDDED, "properties": {"metadata": TEXT}},
    "embedded in metadata": {**EMBEDDED, "properties": {"metadata": obj(a={**EMBEDDED, **OPEN})}},
    "embedded with a name's pattern": {**EMBEDDED, "properties": {"metadata": obj(name={**TEXT, "pattern": "^a"})}},
    # defaults
    "default": {**TEXT, "default": "x"},
    "default null": {**TEXT, "default": None},
    "default null of nullable": {**TEXT, "default": None, "nullable": True},
    "default of another type": {**TEXT, "default": 1},
    "default 1.0 of an integer": {**WHOLE, "default": 1.0},
    "default 1.5 of an integer": {**WHOLE, "default": 1.5},
    "default 1 of a number": {**NUMBER, "default": 1},
    "default too long": {**TEXT, "default": "xx", "maxLength": 1},
    "default without a match": {**TEXT, "default": "xx", "pattern": "^a$"},
    "default of another enum": {**TEXT, "default": "x", "enum": ["a"]},
    "default with unknown fields": {**obj(b=TEXT), "default": {"c": 1}},
    "default with unknown fields, open": {**obj(b=TEXT), "default": {"c": 1}, **OPEN},
    "default without what is required": {**obj(b=TEXT), "default": {}, "required": ["b"]},
    "default that needs another default": {**obj(b={**TEXT, "default": "x"}), "default": {}, "required": ["b"]},
    "default in additionalProperties": {**OBJECT, "additionalProperties": {**TEXT, "default": "x"}},
    "wrong default in additionalProperties": {**OBJECT, "additionalProperties": {**TEXT, "default": 1}},
    "default in items": array({**TEXT, "default": "x"}),
    "wrong default in items": array({**TEXT, "default": 1}),
    "default of a set": {**list_set(TEXT), "default": ["a", "a"]},
    "default of an embedded object": {**EMBEDDED, **OPEN, "default": {}},
    "default of a right embedded object": {**EMBEDDED, **OPEN, "default": {"apiVersion": "v1", "kind": "X"}},
    "default of an int32": {**WHOLE, "format": "int32", "default": 2147483648},
    "default of a date": {**TEXT, "format": "date", "default": "x"},
    "default of int-or-string": {**ANY, "default": True},
    "default of open": {**OPEN, "default": {"x": 1}},
    "several": {**array({"type": "x"}), "uniqueItems": True, "id": "x", "x-kubernetes-list-type": "bag"},
}

# Schemas of the whole object.
ROOTS: dict[str, Any] = {
    "root: object": OBJECT,
    "root: open": {**OBJECT, **OPEN},
    "root: only open": OPEN,
    "root: string": TEXT,
    "root: nothing": {},
    "root: array": array(),
    "root: nullable": {**OBJECT, "nullable": True},
    "root: additionalProperties": {**OBJECT, "additionalProperties": TEXT},
    "root: additionalProperties true": {**OBJECT, "additionalProperties": True},
    "root: additionalProperties false": {**OBJECT, "additionalProperties": False},
    "root: required": {**obj(spec=OBJECT), "required": ["spec"]},
    "root: anyOf": {**obj(spec=OBJECT), "anyOf": [{"required": ["spec"]}]},
    "root: oneOf": {**obj(spec=OBJECT), "oneOf": [{"required": ["spec"]}]},
    "root: not": {**obj(spec=OBJECT), "not": {"required": ["spec"]}},
    "root: minProperties": {**obj(spec=OBJECT), "minProperties": 1},
    "root: default": {**obj(spec=OBJECT), "default": {"spec": {}}},
    "root: enum": {**obj(spec=OBJECT), "enum": [{}]},
    "root: embedded": {**EMBEDDED, "properties": {"spec": OBJECT}},
    "root: map type": {**obj(spec=OBJECT), "x-kubernetes-map-type": "atomic"},
    "root: list type": {**obj(spec=OBJECT), "x-kubernetes-list-type": "atomic"},
    "root: description": {**obj(spec=OBJECT), "description": "x", "title": "y"},
    "root: metadata": obj(metadata=OBJECT),
    "root: metadata with a name": obj(metadata=obj(name={**TEXT, "maxLength": 5})),
    "root: metadata with name and generateName": obj(metadata=obj(name=TEXT, generateName=TEXT)),
    "root: metadata with labels": obj(metadata=obj(labels=OBJECT)),
    "root: metadata with name and labels": obj(metadata=obj(name=TEXT, labels=OBJECT)),
    "root: metadata described": obj(metadata={**OBJECT, "description": "x"}),
    "root: metadata required": obj(metadata={**obj(name=TEXT), "required": ["name"]}),
    "root: metadata open": obj(metadata={**OBJECT, **OPEN}),
    "root: metadata as text": obj(metadata=TEXT),
    "root: metadata with a default": obj(metadata={**OBJECT, "default": {}}),
    "root: metadata with a default name": obj(metadata=obj(name={**TEXT, "default": "x"})),
    "root: metadata minProperties": obj(metadata={**OBJECT, "minProperties": 1}),
    "root: metadata of a wrong name": obj(metadata=obj(name=WHOLE)),
    "root: kind as a number": obj(kind=WHOLE),
    "root: kind with a pattern": obj(kind={**TEXT, "pattern": "^W"}),
    "root: kind with a default": obj(kind={**TEXT, "default": "X"}),
    "root: apiVersion as an object": obj(apiVersion=OBJECT),
    "root: allOf with metadata": {**obj(spec=OBJECT), "allOf": [{"properties": {"metadata": {"minProperties": 1}}}]},
    "root: a field called metadata below": obj(spec=obj(metadata=TEXT)),
}

# Fields of the version.
VERSIONS: dict[str, Any] = {
    "version: no schema": {"schema": None},
    "version: an empty schema": {"schema": {}},
    "version: a bad name": {"name": "V1"},
    "version: an empty name": {"name": ""},
    "version: no name": {"name": None},
    "version: a long name": {"name": "v" * 64},
    "version: not served": {"served": False},
    "version: not stored": {"storage": False},
    "version: no served": {"served": None},
    "version: no storage": {"storage": None},
    "version: deprecated": {"deprecated": True, "deprecationWarning": "x"},
    "version: a warning without deprecation": {"deprecationWarning": "x"},
    "version: an empty warning": {"deprecated": True, "deprecationWarning": ""},
    "version: a long warning": {"deprecated": True, "deprecationWarning": "é" * 130},
    "version: a warning with a newline": {"deprecated": True, "deprecationWarning": "aé\nb"},
    "version: a warning with a wide space": {"deprecated": True, "deprecationWarning": "a\u00a0b"},
    "status: anyOf at the root": {
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**obj(spec=OBJECT), "anyOf": [{"required": ["spec"]}]}},
    },
    "status: minProperties at the root": {
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**obj(spec=OBJECT), "minProperties": 1}},
    },
    "status: what may be at the root": {
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {**obj(spec=OBJECT), "required": ["spec"], "description": "x", "title": "x", **OPEN}
        },
    },
    "status: additionalProperties at the root": {
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**OBJECT, "additionalProperties": TEXT}},
    },
    "status: a string at the root": {"subresources": {"status": {}}, "schema": {"openAPIV3Schema": TEXT}},
    "status: map type at the root": {
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**OBJECT, "x-kubernetes-map-type": "atomic"}},
    },
    "column": column(),
    **{
        f"column format {name}": column(format=name)
        for name in (
            "",
            "int32",
            "int64",
            "float",
            "double",
            "byte",
            "date",
            "date-time",
            "password",
            "email",
            "uuid",
            "x",
        )
    },
    **{f"column type {name}": column(type=name) for name in ("", "integer", "date", "object", "array", "x")},
    **{
        f"column path {path!r}": column(jsonPath=path)
        for path in (
            "",
            ".",
            "spec",
            "$.spec",
            "{.spec.a}",
            ".spec[0]",
            ".spec[0:2].a",
            "..a",
            ".spec[?(@.a=='b')].c",
            ".a b",
            ".spec['a']",
            ".a.",
            ".spec[",
            ".spec.a[*].b",
            ".[",
            ".spec{",
        )
    },
    "column without a name": column(name=""),
    "column priority": column(priority=-1),
    "scale": scale(),
    "scale without paths": {"subresources": {"scale": {}}},
    "scale with a selector": scale(labelSelectorPath=".status.s"),
    "scale with an empty selector": scale(labelSelectorPath=""),
    **{
        f"scale path {path!r}": scale(specReplicasPath=path, labelSelectorPath=path, statusReplicasPath=path)
        for path in (
            "",
            ".",
            ".spec",
            ".spec.",
            ".spec.a[0]",
            ".status.a",
            "spec.a",
            ".metadata.a",
            ".spec.a b",
            ".spec['a']",
            ".spec..a",
        )
    },
    "selectable": selectable(".a"),
    "selectable nothing": selectable(),
    "selectable without a path": selectable({}),
    "selectable empty": selectable(""),
    **{
        f"selectable {path!r}": selectable(path)
        for path in (
            ".b",
            "a",
            ".a.b",
            ".",
            "..a",
            ".a.",
            "$.a",
            ".a[0]",
            ".metadata.name",
            ".kind",
            "{.a}",
            ".['a']",
            ".a b",
        )
    },
    "selectable metadata": selectable(".metadata.name", metadata=obj(name=TEXT)),
    "selectable number": selectable(".n", n=NUMBER),
    "selectable integer": selectable(".n", n=WHOLE),
    "selectable boolean": selectable(".n", n=TRUTH),
    "selectable object": selectable(".n", n=obj(x=TEXT)),
    "selectable array": selectable(".n", n=array()),
    "selectable item": selectable(".n.x", n=array(obj(x=TEXT))),
    "selectable int-or-string": selectable(".n", n=ANY),
    "selectable date": selectable(".n", n={**TEXT, "format": "date"}),
    "selectable of a map": selectable(".n.x", n={**OBJECT, "additionalProperties": TEXT}),
    "selectable of a map of objects": selectable(".n.x.y", n={**OBJECT, "additionalProperties": obj(y=TEXT)}),
    "selectable beside properties": selectable(".n.x", n={**obj(y=TEXT), "additionalProperties": TEXT}),
    "selectable of an open object": selectable(".n.x", n={**OBJECT, **OPEN}),
    "selectable twice": selectable(".a", ".a"),
    "selectable eight": selectable(*(f".f{n}" for n in range(8)), **{f"f{n}": TEXT for n in range(8)}),
    "selectable nine": selectable(*(f".f{n}" for n in range(9)), **{f"f{n}": TEXT for n in range(9)}),
}

# Fields of the spec; ``names`` are laid over the right ones.
SPECS: dict[str, Any] = {
    "spec: no versions": {"versions": []},
    "spec: a bad scope": {"scope": "namespaced"},
    "spec: no scope": {"scope": None},
    "spec: preserveUnknownFields": {"preserveUnknownFields": True},
    "spec: preserveUnknownFields false": {"preserveUnknownFields": False},
    "spec: preserveUnknownFields and a default": {
        "preserveUnknownFields": True,
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": obj(a={**TEXT, "default": "x"})},
            }
        ],
    },
    "spec: no group": {"group": ""},
    "spec: a group of one word": {"group": "example"},
    "spec: a group in capitals": {"group": "Facts.example.com"},
    "spec: a group that is too long": {"group": "a." * 130 + "com"},
    "spec: another group": {"group": "other.example.com"},
    "spec: a protected group": {"group": "facts.k8s.io"},
    "names: other plural": {"names": {"plural": "things"}},
    "names: a bad plural": {"names": {"plural": "Widgets"}},
    "names: no plural": {"names": {"plural": ""}},
    "names: a bad singular": {"names": {"singular": "a_b"}},
    "names: no kind": {"names": {"kind": ""}},
    "names: a kind with a dot": {"names": {"kind": "Wid.get"}},
    "names: a kind that starts with a digit": {"names": {"kind": "1Widget"}},
    "names: a long kind": {"names": {"kind": "W" * 64, "listKind": "Ws"}},
    "names: listKind is kind": {"names": {"listKind": "Widget"}},
    "names: a bad listKind": {"names": {"listKind": "List!"}},
    "names: bad short names": {"names": {"shortNames": ["w", "W", ""]}},
    "names: bad categories": {"names": {"categories": ["all", "A b"]}},
    "names: kind in capitals": {"names": {"kind": "WIDGET"}},
    "conversion: none": {"conversion": {"strategy": "None"}},
    "conversion: no strategy": {"conversion": {}},
    "conversion: an unknown strategy": {"conversion": {"strategy": "webhook"}},
    "conversion: a webhook without one": {"conversion": {"strategy": "Webhook"}},
    "conversion: none with a webhook": {
        "conversion": {
            "strategy": "None",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x"}},
        }
    },
    "conversion: none with versions": {
        "conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}
    },
    "conversion: webhook": webhook(),
    "conversion: webhook without versions": webhook(conversionReviewVersions=[]),
    "conversion: webhook with unknown versions": webhook(conversionReviewVersions=["v2"]),
    "conversion: webhook with bad versions": webhook(conversionReviewVersions=["v1", "V2", "v1"]),
    "conversion: webhook with v1beta1": webhook(conversionReviewVersions=["v1beta1"]),
    "conversion: webhook without a client": webhook(clientConfig=None),
    "conversion: webhook with an empty client": webhook(clientConfig={}),
    "conversion: webhook with url and service": webhook(
        clientConfig={"url": "https://x", "service": {"name": "s", "namespace": "n"}}
    ),
    **{
        f"conversion: webhook at {url}": webhook(clientConfig={"url": url})
        for url in (
            "https://x/y",
            "http://x",
            "x",
            "",
            "https://x?a=b",
            "https://x#f",
            "https://u:p@x",
            "https://",
            "https:///x",
            "https://%zz",
            "HTTPS://x",
        )
    },
    **{
        f"conversion: webhook of service {json.dumps(service)}": webhook(clientConfig={"service": service})
        for service in (
            {},
            {"name": "s"},
            {"namespace": "n"},
            {"name": "S", "namespace": "N"},
            {"name": "s", "namespace": "n", "port": 0},
            {"name": "s", "namespace": "n", "port": 65536},
            {"name": "s", "namespace": "n", "path": "x"},
            {"name": "s", "namespace": "n", "path": "/x//y"},
            {"name": "s", "namespace": "n", "path": "/"},
            {"name": "s", "namespace": "n", "path": ""},
            {"name": "s", "namespace": "n", "path": "/x?y"},
            {"name": "s", "namespace": "n", "path": "/a_b/"},
            {"name": "s", "namespace": "n", "path": "/x/../y"},
        )
    },
    "conversion: webhook with a bundle that is none": webhook(clientConfig={"url": "https://x", "caBundle": "eHh4"}),
    "conversion: webhook with a bundle that is not base64": webhook(clientConfig={"url": "https://x", "caBundle": "!"}),
    "versions: two the same": {
        "versions": [
            {"name": "v1", "served": True, "storage": storage, "schema": {"openAPIV3Schema": obj(**{n: TEXT})}}
            for storage, n in ((True, "a"), (False, "b"))
        ]
    },
    "versions: two stored": {
        "versions": [
            {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": obj(**{name: TEXT})}}
            for name in ("v1", "v2")
        ]
    },
    "versions: a wrong schema in both": {
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": obj(a={})}}
            for name in ("v1", "v2")
        ]
    },
    "versions: a wrong schema in one": {
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": obj(**{name: {}})}}
            for name in ("v1", "v2")
        ]
    },
    "versions: no schema in one": {
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OBJECT}},
            {"name": "v2", "served": True, "storage": False},
        ]
    },
}
CASES = (
    [(name, "field", value) for name, value in FIELDS.items()]
    + [(name, "root", value) for name, value in ROOTS.items()]
    + [(name, "version", value) for name, value in VERSIONS.items()]
    + [(name, "spec", value) for name, value in SPECS.items()]
)
Send = Callable[[Json], Awaitable[tuple[int, Json]]]


def generate_crd(part: str, value: Any) -> Json:
    """Return the CRD of a case."""
    schema = obj(a=value) if part == "field" else value if part == "root" else obj(a=TEXT)
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if part == "version":
        version = {key: inner for key, inner in {**version, **value}.items() if inner is not None}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec: Json = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    if part == "spec":
        spec |= {**value, "names": {**names, **value.get("names", {})}}
    plural, group = spec["names"]["plural"] or "widgets", spec["group"] or GROUP
    name = f"{plural}.{group}" if "other" not in group and plural != "things" else f"widgets.{GROUP}"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {key: inner for key, inner in spec.items() if inner is not None},
    }


def seen(code: int, answer: Json) -> list[Any]:
    """Return an answer as facts have it."""
    if code == 201:
        return [code]
    causes = answer.get("details", {}).get("causes")
    if not causes:
        return [code, re.sub(r" at input byte \d+$", "", answer["message"])]
    return [code, sorted(_WHOLE.sub("$WHOLE", f"{cause['field']}: {cause['message']}") for cause in causes)]


async def ask(send: Send, cases: Iterable[tuple[str, str, Any]] = CASES) -> dict[str, list[Any]]:
    """Ask a server about the cases; nothing is stored."""
    return {name: seen(*await send(generate_crd(part, value))) for name, part, value in cases}


def read_facts() -> dict[str, list[Any]]:
    facts: dict[str, list[Any]] = json.loads(FILE.read_text())
    return facts


def _write(facts: dict[str, list[Any]]) -> None:
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(fact, ensure_ascii=False)}"
        for name, fact in facts.items()
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


async def _record() -> None:
    async with recording.real_server() as api:

        async def send(crd: Json) -> tuple[int, Json]:
            answer = await api.post(f"{CRDS}?dryRun=All", crd)
            return answer.status, answer.json

        _write(await ask(send))


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
