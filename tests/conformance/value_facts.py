"""Which numbers, and texts of a format, a real server takes in custom resources, and how it writes numbers.

The schemas, and the values that each is tried with, are written by hand. ``value_facts.json`` has what the values
became, or the causes; it is written by ``python -m tests.conformance.value_facts``, which asks a real server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from tests.conformance import recording

FILE = Path(__file__).with_name("value_facts.json")
Json = dict[str, Any]

NUMBERS = [
    "0",
    "1",
    "1.0",
    "-0.0",
    "1e3",
    "1.5",
    "97",
    "1e20",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "2147483648",
    "2147483648.0",
    "4294967296.5",
    "1e17",
    "1234567.5",
    "true",
    "null",
    '"1"',
    "[]",
    "{}",
]
LARGE = ["1e21", "1e308", "3.4e38", "3.5e38", "1e400"]
SCHEMAS: dict[str, Json] = {
    "integer": {"type": "integer"},
    "int32": {"type": "integer", "format": "int32"},
    "number": {"type": "number"},
    "float": {"type": "number", "format": "float"},
    "number int32": {"type": "number", "format": "int32"},
    "int-or-string": {"x-kubernetes-int-or-string": True},
    "string int-or-string": {"x-kubernetes-int-or-string": True, "type": "string"},
    "open": {"x-kubernetes-preserve-unknown-fields": True},
    "enum": {"type": "integer", "enum": [1, 100]},
    "enum of numbers": {"type": "number", "enum": [1, 1.5, 100]},
    "bounds": {"type": "integer", "maximum": 100, "minimum": 1},
    "bounds of numbers": {"type": "number", "maximum": 100.5, "minimum": 0.5},
    "exclusive bounds": {
        "type": "number",
        "maximum": 100,
        "minimum": 1,
        "exclusiveMaximum": True,
        "exclusiveMinimum": True,
    },
    "bound that is no integer": {"type": "integer", "maximum": 100.5},
    "bound out of range": {"type": "integer", "format": "int32", "maximum": 4294967296},
    "multiple": {"type": "integer", "multipleOf": 3},
    "multiple of a fraction": {"type": "number", "multipleOf": 0.1},
    "multiple of nothing": {"type": "integer", "multipleOf": 0},
    "string": {"type": "string"},
    "string date": {"type": "string", "format": "date"},
}
TEXTS: dict[str, tuple[str, ...]] = {
    "byte": ("", "YQ==", "YQ", "YWI=", "YWJj", "YQ==\n", "Y Q=", "-_==", "=", "===="),
    "bsonobjectid": ("", "507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011", "507f1f77bcf86cd79943901", "zz"),
    "cidr": (
        "",
        "10.0.0.0/8",
        "10.0.0.1/8",
        "010.0.0.0/08",
        "10.0.0.0/33",
        "10.0.0.0",
        "10.0.0.0/255.0.0.0",
        "::/0",
        "::1/129",
        "fe80::%1/64",
        "10.0.0/8",
        "10.0.0.0/-1",
        "1.2.3.4/ 8",
        "::ffff:1.2.3.4/96",
    ),
    "creditcard": (
        "",
        "4111111111111111",
        "4111-1111-1111-1111",
        "4111111111111112",
        "378282246310005",
        "x4111111111111111",
    ),
    "date": (
        "",
        "2020-01-31",
        "2020-02-30",
        "2020-02-29",
        "2021-02-29",
        "2020-1-1",
        "0000-01-01",
        "20200101",
        "2020-13-01",
        "2020-01-01T00:00:00Z",
        " 2020-01-01",
    ),
    "date-time": (
        "",
        "2020-01-01T00:00:00Z",
        "2020-01-01t00:00:00z",
        "2020-01-01 00:00:00Z",
        "2020-01-01T24:00:00Z",
        "2020-01-01T23:59:60Z",
        "2020-01-01T00:00:00",
        "2020-01-01T00:00:00+01:00",
        "2020-01-01T00:00:00.123Z",
        "2020-01-01T00:00:00x1Z",
        "2020-02-30T00:00:00Z",
        "2020-01-01T00:00:00Zt",
        "2020-01-01T0:00:00Z",
        "2020-01-01T00:00:00+99:99",
    ),
    "datetime": ("2020-01-01T00:00:00Z", "x"),
    "duration": (
        "",
        "0",
        "1",
        "1s",
        "1.5h",
        "-1m",
        "+1m",
        "1h2m3s",
        "1d",
        "1 d",
        "1 day",
        "2 weeks",
        "1w",
        "1x",
        "1 hours",
        "1hours",
        "abc 1d",
        "1µs",
        "1μs",
        "1us",
        "1 sec",
        "1 seconds",
        "1 minutes",
        "1 month",
        "s",
        ".5s",
        "1.s",
        ".s",
        "1D",
        "1e3s",
        "9223372036854775807ns",
        "9223372036854775808ns",
        "99999999999999999999d",
        "300000h",
        "1 hr",
        "1milli",
        "1 nanos",
        "1s1",
        "1 s",
    ),
    "email": (
        "",
        "a@b",
        "a@b.c",
        "a",
        "@b",
        "a@",
        "a b@c",
        "a@b c",
        "A <a@b>",
        "<a@b>",
        '"a b"@c',
        "a@[1.2.3.4]",
        "a..b@c",
        ".a@b",
        "a@b.",
        "a@.b",
        "a@b,c@d",
        "é@b",
        "a@é",
        "a@b (x)",
        '"A B" <a@b>',
        "A B <a@b>",
        "a+b@c-d.e",
        "a@b@c",
        " a@b ",
        "a<b@c>",
        "a@ b",
        "a@\tb ",
        "a @b",
        "a@ [1.2.3.4]",
        "<a@ b>",
        "A < a@b>",
        "<a@b >",
        "A .B. <a@b>",
        "A .. B <a@b>",
    ),
    "hexcolor": ("", "#FFF", "fff", "#ffff", "#FFFFFF", "#ggg"),
    "hostname": (
        "",
        "a",
        "a.b",
        "example.com",
        "a-b.com",
        "-a",
        "a-",
        "a_b",
        "a.b.",
        "a..b",
        "1",
        "1.2",
        "1.2.3.4",
        "a.1",
        "a.b1",
        "A.B",
        "é.com",
        "a.é",
        "☃.com",
        "a" * 63,
        "a" * 64,
        "a" * 65,
        "a" * 63 + ".com",
        "a" * 64 + ".com",
        "a b",
        "localhost",
        "a.co",
        "a.c",
        "xn--a.com",
        "a--b",
        "a-.com",
        "-.com",
        ".",
        ".com",
        "a.com-",
        "a" * 61 + ".b" * 100 + ".com",
    ),
    "ipv4": (
        "",
        "1.2.3.4",
        "01.2.3.4",
        "1.2.3",
        "1.2.3.256",
        "::ffff:1.2.3.4",
        "::1",
        " 1.2.3.4",
        "1.2.3.4.5",
        "0x1.2.3.4",
        "1.2.3.4%1",
    ),
    "ipv6": (
        "",
        "::1",
        "::",
        "::ffff:1.2.3.4",
        "::ffff:01.2.3.4",
        "fe80::1%eth0",
        "1.2.3.4",
        "[::1]",
        ":::",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7",
        "g::",
        "00001::",
    ),
    "isbn": ("", "0321751043", "978-0321751041", "0-321-75104-3", "0321751044", "097522980X", "978 0321751041"),
    "isbn10": ("0321751043", "978-0321751041", "x"),
    "isbn13": ("0321751043", "978-0321751041", "9780321751042"),
    "k8s-short-name": ("", "a", "a-b", "-a", "A", "a.b", "a" * 63, "a" * 64),
    "k8s-long-name": ("", "a", "a.b", "a..b", "A.b", "a" * 253, "a" * 254, "a-.b"),
    "mac": (
        "",
        "01:02:03:04:05:06",
        "01-02-03-04-05-06",
        "0102.0304.0506",
        "01:02:03:04:05",
        "01:02-03:04:05:06",
        "01:02:03:04:05:06:07:08",
        "0102.0304.0506.0708",
        "1:2:3:4:5:6",
        "01:02:03:04:05:0G",
        ":".join(["00"] * 20),
        "0a" * 6,
        "0a" * 8,
        "0a" * 20,
        "0a" * 7,
    ),
    "password": ("", "x"),
    "rgbcolor": ("", "rgb(1,2,3)", "rgb( 1 , 2 , 3 )", "rgb(256,0,0)", "rgb(01,0,0)", "RGB(1,2,3)"),
    "ssn": ("", "123-45-6789", "123456789", "123 45 6789", "123-456789"),
    "uri": (
        "",
        "http://a",
        "/a",
        "a",
        "a:b",
        "a:",
        ":a",
        "//a",
        "http://a b",
        "http://a/b c",
        "/a b",
        "http://[::1]",
        "http://[::1",
        "http://a:b",
        "http://a:80",
        "http://a:",
        "http://u:p@a",
        "http://u p@a",
        "http://a/%zz",
        "/%zz",
        "http://%41",
        "http://a%20b",
        "*",
        "?a",
        "/?a=%zz",
        "http://",
        "http:///a",
        "/a#b",
        "http://a#b",
        "\t/a",
        "é:b",
        "/é",
        "1a:b",
        "a+b:c",
        "http://é",
        "http://a|b",
        "mailto:a@b",
        "http://[fe80::1%25en0]",
        "http://[x]",
        "/a\\b",
        "http://a\\b",
        "http://::1",
        "http://a:80:80",
        "http://a:",
        "http://:80",
        "http://:",
        "http://::",
        "http://a[b",
        "http://a]b",
        "http://[::1]a",
        "http://a[::1]",
        "http://u@:",
        "http://u:p:q@a",
        "http://[a]:80:80",
        "HTTPS://a:80:80",
        "ftp://a:80:80",
        "ftp://::1",
        "ftp://a[b",
    ),
    "uuid": (
        "",
        "12345678-1234-1234-1234-123456789abc",
        "12345678123412341234123456789ABC",
        "12345678-1234-1234-1234-123456789ab",
    ),
    "uuid3": ("12345678-1234-3234-1234-123456789abc", "12345678-1234-4234-8234-123456789abc"),
    "uuid4": (
        "12345678-1234-4234-8234-123456789abc",
        "12345678-1234-4234-1234-123456789abc",
        "12345678-1234-3234-1234-123456789abc",
    ),
    "uuid5": ("12345678-1234-5234-8234-123456789abc", "12345678-1234-4234-8234-123456789abc"),
    "unknown": ("", "x"),
    "IPv4": ("x",),
    "date_time": ("x",),
    "ip-v4": ("x", "1.2.3.4"),
}
_WHOLE: Json = {"type": "integer"}
_TEXT: Json = {"type": "string"}
_EITHER: Json = {"x-kubernetes-int-or-string": True}
_PAIR: Json = {"type": "object", "properties": {"a": _TEXT, "b": _WHOLE, "c": {"type": "array", "items": _TEXT}}}
_A: Json = {"properties": {"a": {"minLength": 3}}}
_B: Json = {"properties": {"b": {"minimum": 3}}}
_C: Json = {"properties": {"c": {"minItems": 2, "items": {"pattern": "^x"}}}}
_MAP: Json = {"type": "object", "additionalProperties": _TEXT}
PAIRS = (
    "{}",
    '{"a":"x"}',
    '{"b":1}',
    '{"a":"x","b":1}',
    '{"a":"xyz","b":1}',
    '{"a":1,"b":"x"}',
    '{"c":["a"]}',
    '{"a":"x","c":["a","b","c"]}',
    '{"a":"xyz","b":5}',
    '{"a":null,"c":[null]}',
    "null",
    "1",
)
ENDS = ("1", "1.5", "true", "null", '"a"', '"xy"', '"x12"', '"1.2.3.4"', "[]", "{}", "1e20", '"2020-01-01"')
TEXTS_OF_LISTS = ("[]", '["a"]', '["xa","b"]', '["xa","xb","c"]', "[1]", "{}", '"x"')
MAPS = ("{}", '{"a":"x"}', '{"a":"x","b":"xyz"}', '{"a":1}')
ALTERNATIVES: dict[str, tuple[Json, tuple[str, ...]]] = {
    "whole or text": ({**_EITHER, "anyOf": [_WHOLE, _TEXT]}, ENDS),
    "whole or text with a pattern": ({**_EITHER, "anyOf": [_WHOLE, _TEXT], "pattern": "^x"}, ENDS),
    "int-or-string, any of bounds": ({**_EITHER, "anyOf": [{"minimum": 5}, {"pattern": "^x..$"}]}, ENDS),
    "int-or-string, any of formats": ({**_EITHER, "anyOf": [{"format": "ipv4"}, {"format": "date"}]}, ENDS),
    "int-or-string, not of a format": ({**_EITHER, "not": {"format": "ipv4"}}, ENDS),
    "int-or-string of a format": ({**_EITHER, "format": "ipv4"}, ENDS),
    "whole of a format of texts": ({**_WHOLE, "format": "date"}, ENDS),
    "open of a format": ({"x-kubernetes-preserve-unknown-fields": True, "format": "date"}, ENDS),
    "text, any of": ({**_TEXT, "anyOf": [{"minLength": 4}, {"pattern": "^x"}, {"enum": ["a", "b"]}]}, ENDS),
    "text, one of": ({**_TEXT, "oneOf": [{"minLength": 4}, {"pattern": "^x"}, {"format": "ipv4"}]}, ENDS),
    "text, all of": ({**_TEXT, "allOf": [{"minLength": 4}, {"pattern": "^x"}, {"format": "ipv4"}]}, ENDS),
    "number, any of": ({"type": "number", "anyOf": [{"minimum": 5}, {"enum": [2]}, {"multipleOf": 4}]}, ENDS),
    "pair, any of": ({**_PAIR, "anyOf": [_A, _B, _C]}, PAIRS),
    "pair, any of the other way": ({**_PAIR, "anyOf": [_C, _B, _A]}, PAIRS),
    "pair, one of": ({**_PAIR, "oneOf": [_A, _B, _C]}, PAIRS),
    "pair, one of what is required": ({**_PAIR, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, PAIRS),
    "pair, required and more": (
        {**_PAIR, "oneOf": [{"required": ["c"]}, {**_A, "required": ["b"]}, {"required": ["b", "c"]}]},
        PAIRS,
    ),
    "pair, all of any": ({**_PAIR, "allOf": [{"anyOf": [_A, _B]}, {"anyOf": [{"required": ["a"]}, _C]}]}, PAIRS),
    "pair, any of all": ({**_PAIR, "anyOf": [{"allOf": [_A, _B]}, {"oneOf": [_C, _B]}, {"not": _A}]}, PAIRS),
    "pair, one of any": ({**_PAIR, "oneOf": [{"anyOf": [_A, _B]}, {"oneOf": [_C, _B, _A]}, _C]}, PAIRS),
    "pair, not": ({**_PAIR, "not": {"anyOf": [{"required": ["a", "b"]}, _C]}}, PAIRS),
    "list, any of": (
        {"type": "array", "items": _TEXT, "anyOf": [{"minItems": 4}, {"items": {"pattern": "^x"}}, {"maxItems": 1}]},
        TEXTS_OF_LISTS,
    ),
    "map, any of": ({**_MAP, "anyOf": [{"minProperties": 3}, {"required": ["c"]}, _A]}, MAPS),
    "nullable, any of": ({**_TEXT, "nullable": True, "anyOf": [{"minLength": 4}, {"enum": ["a", None]}]}, ENDS),
}
Send = Callable[[bytes], Awaitable[tuple[int, str]]]


def schema() -> Json:
    """Return a schema with a field for each of the others."""
    texts = {f"text {name}": {"type": "string", "format": name} for name in TEXTS}
    alternatives = {name: given for name, (given, _) in ALTERNATIVES.items()}
    return {"type": "object", "properties": SCHEMAS | texts | alternatives}


def _cases() -> dict[str, str]:
    """Return the fields of each object that is sent: one number, or the texts in one place of their lists."""
    cases = {f"{name}: {value}": f"{json.dumps(name)}:{value}" for name in SCHEMAS for value in NUMBERS}
    for name in ("integer", "number", "float", "string"):
        cases |= {f"{name}: {value}": f"{json.dumps(name)}:{value}" for value in LARGE}
    for place in range(max(map(len, TEXTS.values()))):
        found = {f"text {name}": values[place] for name, values in TEXTS.items() if place < len(values)}
        cases[f"texts {place}"] = json.dumps(found)[1:-1]
    for name, (_, values) in ALTERNATIVES.items():
        cases |= {f"{name}: {value}": f"{json.dumps(name)}:{value}" for value in values}
    return cases


CASES = _cases()


def seen(code: int, answer: str) -> Any:
    """Return what the fields became, numbers as they are written (but for the sign of an exponent), or the causes."""
    if code == 201:
        decoded = json.loads(answer, parse_float=_written, parse_int=_written)
        return {name: value for name, value in decoded.items() if name not in ("apiVersion", "kind", "metadata")}
    content = json.loads(answer)
    causes = content.get("details", {}).get("causes")
    return [code, sorted(f"{cause['field']}: {cause['message']}" for cause in causes)] if causes else [code]


def _written(number: str) -> str:
    return f"number {number.replace('e+', 'e')}"


async def ask(send: Send, group: str, cases: Iterable[str] = tuple(CASES)) -> dict[str, Any]:
    """Ask a server about the cases; nothing is stored."""
    kind = f'"apiVersion":"{group}/v1","kind":"Widget","metadata":{{"name":"w"}}'
    return {name: seen(*await send(f"{{{kind},{fields}}}".encode())) for name in cases if (fields := CASES[name])}


def read_facts() -> dict[str, Any]:
    return recording.read_facts(FILE)


async def _record() -> None:
    from tests.conformance.target import widget_crd

    async with recording.real_server() as api:
        path = await api.define(widget_crd(api.group(), schema=schema(), scale=False))

        async def send(body: bytes) -> tuple[int, str]:
            answer = await api.call("POST", f"{path}?dryRun=All", body, **{"Content-Type": "application/json"})
            return answer.status, answer.text

        recording.write_facts(FILE, await ask(send, api.group()))


if __name__ == "__main__":
    sys.exit(asyncio.run(_record()))
