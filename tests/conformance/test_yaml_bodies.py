"""Bodies that say they are YAML: applied objects are, whatever wrote them, so that JSON is read as YAML there.

Source: Kubernetes documentation, "Server-Side Apply"; apimachinery pkg/runtime/serializer/json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from multidict import CIMultiDict

from deltaloop.api.json_writing import json_for_yaml
from deltaloop.api.yaml_writer import write_yaml
from tests.api.test_yaml_writer import TEXTS
from tests.apiserver.serving import Answer
from tests.conformance.target import Api, conformance

HEAD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
IN_LINES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: '1'\n  k: '2'\n  l: '1'\n  l: '2'\n"
TWICE = ('line 6: key "k" already set in map', 'line 8: key "l" already set in map')


@dataclass(frozen=True)
class Sending:
    """The two ways in which YAML comes."""

    api: Api
    applied: bool

    async def __call__(self, body: str | bytes, *, query: str = "") -> Answer:
        raw = body.encode() if isinstance(body, str) else body
        if self.applied:
            path = f"{self.api.config_maps}/a?fieldManager=m&dryRun=All{query}"
            return await self.api.call("PATCH", path, raw, **{"Content-Type": "application/apply-patch+yaml"})
        path = f"{self.api.config_maps}?dryRun=All{query}"
        return await self.api.call("POST", path, raw, **{"Content-Type": "application/yaml"})


def both(api: Api) -> tuple[Sending, Sending]:
    return Sending(api, applied=True), Sending(api, applied=False)


def in_json(value: str) -> str:
    return json.dumps({**HEAD, "data": {"k": value}}, ensure_ascii=False)


@conformance(
    "YAML: line breaks beyond ASCII are folded within quotes, also in JSON",
    ("the next line", "a\x85b", "a b"),
    ("two of them", "a\x85\x85b", "a\nb"),
    ("the separator of lines", "a \u2028 b", "a\u2028b"),
    ("the separator of paragraphs", "a \u2029 b", "a\u2029b"),
    ("beyond the basic plane", "a\U0001f600b", "a\U0001f600b"),
    ("a mark of byte order", "a\ufeffb", "a\ufeffb"),
)
async def test_line_breaks(api: Api, written: str, stored: str) -> None:
    for send in both(api):
        answer = await send(in_json(written))
        assert answer.status == 201, answer.text
        assert answer.json["data"] == {"k": stored}


@conformance(
    "YAML: refused, also in JSON",
    ("a delete character", in_json("\x7f"), "control characters are not allowed"),
    ("another control character", in_json("\x9b"), "control characters are not allowed"),
    ("what is no character", in_json("\uffff"), "control characters are not allowed"),
    ("two halves of a surrogate pair", json.dumps({**HEAD, "data": {"k": "\U0001f600"}}), "invalid Unicode character"),
    ("half a surrogate pair", in_json("x").replace("x", "\\ud800"), "invalid Unicode character"),
    ("no object", "[]", "cannot unmarshal array"),
)
async def test_invalid_yaml_is_rejected(api: Api, written: str, reason: str) -> None:
    for send in both(api):
        message = (await send(written)).refuses(400, "BadRequest")
        if send.applied:
            assert message.startswith("error decoding patch: ")
            assert reason in message


@conformance(
    "YAML: what is none is refused",
    ("a list without an end", "a: ["),
    ("a tab before a key", "kind: ConfigMap\n\tapiVersion: v1"),
    ("an alias without an anchor", "a: *b"),
    ("no number", "a: .nan"),
)
async def test_body_that_is_not_yaml(api: Api, written: str) -> None:
    for send in both(api):
        (await send(written)).refuses(400, "BadRequest")


@conformance("YAML: what our client writes is read as it was meant")
async def test_as_our_client_writes(api: Api) -> None:
    value = (
        "".join(map(chr, range(0x20, 0xA1))) + " \u2028 \u2029 \x85\x85 \ufeff\ufffe\uffff\U0001f600\U0010ffff\n\t\r"
    )
    for send in both(api):
        answer = await send(json_for_yaml(in_json(value).encode()))
        assert answer.status == 201, answer.text
        assert answer.json["data"] == {"k": value}


@conformance("YAML: what our commands write is read as it was meant")
async def test_as_our_commands_write(api: Api) -> None:
    for in_one_line in (False, True):
        body = write_yaml(
            [{**HEAD, "data": {f"k{n}": text for n, text in enumerate(TEXTS)}}], short_in_one_line=in_one_line
        )
        for send in both(api):
            answer = await send(body)
            assert answer.status == 201, answer.text
            assert answer.json["data"] == {f"k{n}": text for n, text in enumerate(TEXTS)}


@conformance("YAML: the first of several documents counts, and nothing behind it is read")
async def test_documents(api: Api) -> None:
    for behind in ("\n---\n" + in_json("2"), "\n" + in_json("2"), "\n---\na: ]"):
        for send in both(api):
            answer = await send(in_json("1") + behind)
            assert answer.status == 201, answer.text
            assert answer.json["data"] == {"k": "1"}


@conformance(
    "YAML: a key that comes twice is a warning, each time, with its line; nothing or a refusal where one asks for that",
    ("in lines", IN_LINES, {"k": "2", "l": "2"}, TWICE),
    (
        "in JSON",
        json.dumps({**HEAD, "data": {"k": "1"}}).replace('"1"', '"1", "k": "2",\n"k": "3\x85"'),
        {"k": "3 "},
        ('line 1: key "k" already set in map', 'line 2: key "k" already set in map'),
    ),
)
async def test_duplicate_keys(api: Api, written: str, stored: dict[str, str], said: tuple[str, ...]) -> None:
    whole = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
    patch = "error strict decoding patch: error converting YAML to JSON: "
    for send in both(api):
        for mode, warned in (("Warn", said), ("Ignore", ())):
            answer = await send(written, query=f"&fieldValidation={mode}")
            assert (answer.status, answer.json["data"]) == (201, stored)
            headers = cast("CIMultiDict[str]", answer.headers).getall("Warning", [])
            assert headers == [f"299 - {json.dumps(text)}" for text in warned]
        refused = await send(written, query="&fieldValidation=Strict")
        head = patch if send.applied else whole
        assert refused.refuses(400, "BadRequest") == head + "\n  ".join(("yaml: unmarshal errors:", *said))
