from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import is_other_yaml, json_for_yaml
from deltaloop.api.yaml_reader import read_yaml, read_yaml_body, read_yaml_documents
from tests.having import having


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("12:30:45", "12:30:45"),
        ("190:20:30.15", "190:20:30.15"),
        ("0644", 420),
        ("0o644", 420),
        ("-0644", -420),
        ("08", 8),
        ("-08", -8),
        ("08.5", 8.5),
        ("0_8", 8),
        ("0o18", "0o18"),
        ("0O7", 7),
        ("0x10", 16),
        ("0X1f", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("+5", 5),
        ("0", 0),
        ("1e3", 1000),
        ("1e0", 1),
        ("-1e0", -1),
        ("1.0", 1),
        ("100e-2", 1),
        (".5e1", 5),
        ("1e-7", 1e-7),
        ("0.0", 0),
        ("-0.0", 0),
        ("-0", 0),
        ("+0x10", 16),
        ("-0b1", -1),
        ("1e20", 10**20),
        ("1e21", 1e21),
        ("1e1_0", 10**10),
        ("0x1p4", "0x1p4"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1),
        ("-1.5E-2", -0.015),
        ("1e999", "1e999"),
        ("1.2.3", "1.2.3"),
        ("1Gi", "1Gi"),
        ("0x", "0x"),
        ("-", [None]),
        ("+", "+"),
        ("._5", "._5"),
        (".5_0e1_0", 5000000000),
        (".5__0", ".5__0"),
        (".5_", ".5_"),
        (".5_e1", ".5_e1"),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 18446744073709552000),
        ("+18446744073709551615", 18446744073709552000),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", -9223372036854776000),
        ("99999999999999999999", 10**20),
        ("123456789012345678901", 123456789012345680000),
        ("07777777777777777777777777", 7.777777777777778e24),
        ("0x1ffffffffffffffffff", "0x1ffffffffffffffffff"),
        ("yes", True),
        ("y", True),
        ("On", True),
        ("no", False),
        ("N", False),
        ("OFF", False),
        ("yEs", "yEs"),
        ("true", True),
        ("~", None),
        ("a: ", {"a": None}),
        ("null", None),
        ("=", "="),
        ("a: [<<]", {"a": ["<<"]}),
        ('"yes"', "yes"),
        ("'0644'", "0644"),
        ("! 12", "12"),
        ("!!str 12", "12"),
        ("!!str", ""),
        ("!!int '5'", 5),
        ("!!float 3", 3),
        ("!!float 08", 8),
        ("!!float 1.5", 1.5),
        ("[1e0, '1e0', 1.0]", [1, "1e0", 1]),
        ('{"a": 1.0}', {"a": 1}),
        ('{"a": [1e0, 10.50, -0.0]}', {"a": [1, 10.5, 0]}),
        ("!!timestamp 2026-01-02", "2026-01-02"),
        ("!Ref foo", "foo"),
        ("!Ref {a: 1}", {"a": 1}),
        ("|\n  12\n", "12\n"),
        ("%YAML 1.2\n---\na: 1", {"a": 1}),
        ('{\n\t"a": 1\n}', {"a": 1}),
        ('"\\/"', "/"),
    ],
)
def test_yaml_values_match_go(text: str, value: object) -> None:
    read = read_yaml(text)
    assert repr(read) == repr(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{1: a, 0x10: b, 1.5: c, 1e3: d, 08: e}", {"1": "a", "16": "b", "1.5": "c", "1000": "d", "8": "e"}),
        (
            "{1e6: a, 123456.5: b, 16777217.0: c, 0.1: d, 1e-5: e, 0.0001: f, 1e39: g, -1e39: h}",
            {"1e+06": "a", "123456.5": "b", "1.6777216e+07": "c", "0.1": "d", "1e-05": "e", "0.0001": "f"}
            | {".inf": "g", "-.inf": "h"},
        ),
        (
            "{18446744073709551616: a, -0.0: b, 0.1234567891: c}",
            {"1.8446744e+19": "a", "-0": "b", "0.12345679": "c"},
        ),
        (
            "{true: a, no: b, .inf: c, -.inf: d, .nan: e}",
            {"true": "a", "false": "b", ".inf": "c", "-.inf": "d", ".nan": "e"},
        ),
        ("'1': a", {"1": "a"}),
        ("2026-01-02: a", {"2026-01-02": "a"}),
        ("? a\n: b", {"a": "b"}),
    ],
)
def test_keys_are_text(text: str, value: object) -> None:
    assert read_yaml(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "{a: 1, 'a': 2}",
        "1: a\n'1': b",
        "x:\n  - {b: 1, c: 2, b: 3}",
        "0x10: a\n16: b",
        "? a\n: 1\n? a\n: 2",
    ],
)
def test_duplicate_key_raises_error(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"line [1-4], column") as caught:
        read_yaml(text)
    assert "a map contains a key twice" in str(caught.value)


def test_merge_keys() -> None:
    text = (
        "base: &b {a: 1, c: 3}\nmore: &m {a: 9, d: 4}\none: {<<: *b, a: 2}\nall: {<<: [*b, *m], e: 5}\ntext: {'<<': 1}"
    )
    read = read_yaml(text)
    assert read["one"] == {"a": 2, "c": 3}
    assert read["all"] == {"a": 1, "c": 3, "d": 4, "e": 5}
    assert read["text"] == {"<<": 1}


def test_alias_is_copy() -> None:
    read = read_yaml("a: &x {b: [1]}\nc: *x\nd: [*x, *x]")
    read["a"]["b"].append(2)
    assert read["c"] == {"b": [1]}
    assert read["d"] == [{"b": [1]}, {"b": [1]}]
    assert read["d"][0] is not read["d"][1]


def test_anchor_can_be_redefined() -> None:
    assert read_yaml("[&a 1, *a, &a 2, *a]") == [1, 1, 2, 2]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", None])
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\u2028"])
def test_tag_directives_are_bounded(encoding: str | None, line_break: str) -> None:
    def read(number: int) -> Any:
        lines = [f"%TAG !a{each}! tag:x.dev,2026:" for each in range(number)]
        text = line_break.join([*lines, "---", "a: 1"])
        return read_yaml(text if encoding is None else text.encode(encoding))

    assert read(100) == {"a": 1}
    with pytest.raises(InvalidArgumentError, check=having(argument="YAML")):
        read(101)
    assert read_yaml("a: '" + "%TAG " * 1000 + "'") is not None


def test_alias_expansion_is_bounded() -> None:
    lines = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(InvalidArgumentError, match="aliases multiply"):
        read_yaml("\n".join(lines))
    assert len(read_yaml("a: &a [1,1]\nb: [" + ",".join(["*a"] * 10000) + "]")["b"]) == 10000


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_yaml_depth_is_bounded(opening: str) -> None:
    with pytest.raises(InvalidArgumentError, match="nested deeper than 500 levels"):
        read_yaml(opening * 20000)
    assert read_yaml("[" * 400 + "]" * 400) is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: hunter2: b", "line 1, column 11: mapping values are not allowed"),
        ("a: 1\n b: hunter2", "line 2, column 3"),
        ("a:\n\t- hunter2", "line 2, column 1"),
        ("[hunter2", "line 2, column 1|line 1"),
        ("a: *hunter2", "line 1, column 4: an alias has no anchor"),
        ("&hunter2 [*hunter2]", "line 1, column 11: an anchor contains itself"),
        ("a: !!int 1e0", "line 1, column 4: .*!!int"),
        ("a: !!float 18446744073709551615", "line 1, column 4: .*!!float"),
        ("18446744073709551615: hunter2", "line 1, column 1: an integer above 64 bits cannot be the key"),
        ("a: !!int hunter2", "line 1, column 4: .*!!int"),
        ("a: !!binary aHVudGVyMg==", "line 1, column 4: .*!!binary"),
        ("? [hunter2]\n: 1", "line 1, column 3: a list cannot be the key"),
        ("? {hunter2: 1}\n: 1", "line 1, column 3: a map cannot be the key"),
        ("~: hunter2", "line 1, column 1: null cannot be the key"),
        ("<<: hunter2", "line 1, column 5: only a map"),
        ("a: .nan", "line 1, column 4: .*not finite"),
        ("- !hunter2!x y", "line 1"),
        ('"hunter2', "not valid YAML"),
        ("\x01hunter2", "not valid YAML"),
    ],
)
def test_yaml_errors_have_position_without_text(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        read_yaml(text, source="config.yaml")
    assert str(caught.value).startswith("config.yaml ")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_invalid_bytes_are_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="not valid YAML"):
        read_yaml(b"a: \xff\xfe")
    assert read_yaml("a: ü".encode("utf-16")) == {"a": "ü"}
    assert read_yaml(b"\xef\xbb\xbfa: 1") == {"a": 1}


def test_documents() -> None:
    assert list(read_yaml_documents("--- 1\n---\n# nothing\n---\n{a: 2}\n...\n--- x")) == [1, {"a": 2}, "x"]
    assert read_yaml("") is None
    assert read_yaml("# nothing") is None
    assert read_yaml("---\n---\na: 1\n---\n") == {"a": 1}
    with pytest.raises(InvalidArgumentError, check=having(argument="YAML")):
        read_yaml("--- 1\n--- 2")
    with pytest.raises(InvalidArgumentError, match="an alias has no anchor"):
        list(read_yaml_documents("--- &a 1\n--- *a"))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


UNLIKE_YAML = "\x7f \x85 \x9f \u2028 \u2029 \ufeff \ufffe \uffff \U0001f600"


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
@example({UNLIKE_YAML: UNLIKE_YAML, "k" * 2000: "v"}, True)
@example({UNLIKE_YAML: UNLIKE_YAML, "k" * 2000: "v"}, False)
def test_json_is_valid_yaml(value: dict[str, Any], escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    assert read_yaml(text) == read_yaml(text.encode()) == value


@given(st.dictionaries(st.text(max_size=200), JSON, max_size=4), st.booleans())
@example({UNLIKE_YAML: UNLIKE_YAML}, False)
@example({UNLIKE_YAML: UNLIKE_YAML}, True)
def test_json_bodies_are_read_like_yaml(value: dict[str, Any], escaped: bool) -> None:
    body = json.dumps(value, ensure_ascii=escaped).encode()
    if not is_other_yaml(body):
        assert read_yaml_body(body, source="it", repeated=[]) == value
    safe = json_for_yaml(msgspec.json.encode(value))
    assert not is_other_yaml(safe)
    assert msgspec.json.decode(safe) == msgspec.json.decode(msgspec.json.encode(value))
    assert read_yaml_body(safe, source="it", repeated=[]) == msgspec.json.decode(safe)


def test_json_with_special_characters_is_converted_for_yaml() -> None:
    for char in "\x7f\x80\x85\x9f\u2028\u2029\ufffe\uffff":
        body = f'{{"k": "a {char} b"}}'.encode()
        assert is_other_yaml(body)
        assert json_for_yaml(body) == f'{{"k": "a \\u{ord(char):04x} b"}}'.encode()
        try:
            read: object = read_yaml_body(body, source="it", repeated=[])
        except InvalidArgumentError:
            read = None
        assert read != {"k": f"a {char} b"}
    for char in "\t ~\xa0\ufeff\ue000\ufffd\U0001f600\U0010ffff":
        body = json.dumps({"k": f"a {char} b"}, ensure_ascii=False).encode()
        assert json_for_yaml(body) is body or not body.isascii()
        assert not is_other_yaml(body)


def test_bodies_with_several_documents() -> None:
    repeated: list[str] = []
    body = b"a: 1\na: 2\n---\n{a: [\n"
    assert read_yaml_body(body, source="it", repeated=repeated) == {"a": 2}
    assert repeated == ['line 2: key "a" already set in map']
    assert read_yaml_body(b"# none", source="it", repeated=repeated) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: \ud800", "lone surrogate"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "line 1, column 24: a map contains a key twice"),
        ('{"a":' * 501 + "1" + "}" * 501, "line 1, column 2501: the content is nested deeper than 500 levels"),
        ("a: \x7f", "position 3: control characters are not allowed"),
        (b"a: \xff", "position 3: invalid leading UTF-8 octet"),
        ('{"a": NaN}\n{', "line 2, column 1: did not find expected <document start>"),
    ],
)
def test_yaml_errors_describe_problem(text: str | bytes, problem: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(problem)):
        read_yaml(text)


def test_json_depth_limit_equals_yaml_limit() -> None:
    assert read_yaml('{"a":' * 500 + "1" + "}" * 500) == read_yaml("{a: " * 500 + "1" + "}" * 500)


@given(st.text(alphabet="ab01:-[]{}&*!|>\"'#%~,? \n\t=<.", max_size=30))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        documents = list(read_yaml_documents(text))
    except InvalidArgumentError:
        return
    json.dumps(documents, allow_nan=False)
