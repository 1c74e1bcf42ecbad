"""What is written as YAML is read as it was by every reader that we have."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from deltaloop.api import yaml_writer
from deltaloop.api.yaml_reader import read_yaml_body, read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml

# What readers take for more than text, or for less.
TEXTS = (
    *("y", "N", "on", "off", "yes", "~", "null", "", " ", "=", "<<", "-", "?", "[", "{", "#", "*a", "&a", "!a", "%a"),
    *("1", "-1", "1.5", ".5", "1e3", "1E3", "0x1f", "0o17", "017", "0b1", "1_000", ".inf", ".NaN", "12:30", "1:2:3"),
    *(
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        "a: b",
        "a #b",
        "a:",
        "- a",
        "--- a",
        "...",
        "a\nb",
        "a\n\n b\n",
        " a ",
        "\t",
    ),
    *(
        "\x7f",
        "a\x85b",
        "a \x85 b",
        "\u2028",
        "a \u2029 b",
        "\ufeff",
        "\ufffe",
        "\U0001f600",
        "x" * 130 + " \x85 y",
        "\r\n",
    ),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
    | st.sampled_from(TEXTS)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(TEXTS) | st.text(), inner, max_size=3),
    max_leaves=10,
)


def read(text: str) -> list[Any]:
    """Read documents as files and as bodies are read, and by PyYAML; fail if one differs."""
    documents = [*read_yaml_documents(text)]
    assert [*yaml.safe_load_all(text)] == documents  # noqa: TID251 - another reader
    assert json.dumps(read_yaml_body(text.encode(), source="it", repeated=[])) == json.dumps(documents[0])
    return documents


@given(
    st.lists(st.dictionaries(st.text() | st.sampled_from(TEXTS), JSON), min_size=1, max_size=2),
    st.booleans(),
    st.booleans(),
)
@example([dict.fromkeys(TEXTS, "v")], False, False)
@example([{"k": [*TEXTS]}], False, True)
@example([{"k": [{"l": text} for text in TEXTS]}], True, False)
def test_written_yaml_round_trips(documents: list[dict[str, Any]], indents: bool, in_one_line: bool) -> None:
    text = write_yaml(documents, indents_lists=indents, short_in_one_line=in_one_line)
    assert json.dumps(read(text)) == json.dumps(documents)


def test_plain_text_is_not_quoted() -> None:
    values = ["web", "a b", "foos.example.com", "1Gi", "10m", "v1", "/healthz", "Größe", "a\U0001f600b"]
    assert write_yaml([{"a": values}]) == "a:\n" + "".join(f"- {value}\n" for value in values)


def test_yaml_layout_options() -> None:
    shared = {"b": ["c"]}
    assert write_yaml([{"a": shared, "d": shared}]) == "a:\n  b:\n  - c\nd:\n  b:\n  - c\n"
    assert write_yaml([shared], indents_lists=True) == "b:\n  - c\n"
    assert write_yaml([shared, {"a": 1}], short_in_one_line=True) == "b: [c]\n---\n{a: 1}\n"
    assert write_yaml([{"a": ["", "y"]}], short_in_one_line=True) == "a: ['', 'y']\n"


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("not looks_like_text(text)", "False"),
        ("_FOLDED.search(text)", "False"),
    ],
)
def test_each_quoting_rule_is_necessary(line: str, instead: str) -> None:
    source = inspect.getsource(yaml_writer)
    assert line in source
    module: dict[str, Any] = {"__name__": "seeded"}
    exec(source.replace(line, instead), module)
    assert any([*read_yaml_documents(module["write_yaml"]([{"k": text}]))] != [{"k": text}] for text in TEXTS)
