"""Taking managedFields off bytes of any layout is the same as decoding, deleting and encoding."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltaloop.api import managed_fields
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import ReceivedMetadata, Resource, with_stored
from tests.nightly import examples

KEY = "managedFields"
ESCAPED = "managed\\u0046ields"
TEXTS = st.sampled_from(
    [
        "",
        "a",
        KEY,
        f'"{KEY}":[1]',
        f',"{KEY}":[',
        "]",
        "}]}",
        "[",
        '"',
        "\\",
        '\\"',
        "ü",
        "<&>",
        'k:{"type":"Ready"}',
        ",",
        ":",
        "{",
        "\n",
    ]
)
NAMES = TEXTS.filter(lambda text: text != KEY)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**63) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(
    st.fixed_dictionaries({"manager": TEXTS, "fieldsV1": st.dictionaries(TEXTS, VALUES, max_size=3)}), max_size=3
)
FIELDS = st.one_of(ENTRIES, VALUES)


@st.composite
def members(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Make the members of a metadata: managedFields at any place, or twice, or not at all."""
    found: list[tuple[str, Any]] = [("name", "a")]
    found += [(name, draw(VALUES)) for name in draw(st.lists(st.sampled_from(["x", "y", "[", "\\"]), unique=True))]
    for name in draw(st.sampled_from([[], [KEY], [KEY], [KEY], [ESCAPED], [KEY, KEY], [KEY, ESCAPED]])):
        found.insert(draw(st.integers(0, len(found))), (name, draw(FIELDS)))
    return found


def written(names: list[tuple[str, Any]], *, space: str, ascii_only: bool) -> str:
    """Write an object member by member, so that one may be there twice."""
    parts = (
        f"{space}{json.dumps(name, ensure_ascii=ascii_only).replace(json.dumps(ESCAPED), chr(34) + ESCAPED + chr(34))}"
        f"{space}:{space}{dumped(value, space=space, ascii_only=ascii_only)}"
        for name, value in names
    )
    return "{" + ",".join(parts) + space + "}"


def dumped(value: Any, *, space: str, ascii_only: bool) -> str:
    separators = (f",{space}", f":{space}")
    return json.dumps(value, separators=separators, ensure_ascii=ascii_only)


def naive(raw: bytes) -> Any:
    fields = json.loads(raw)
    fields["metadata"].pop(KEY, None)
    return fields


@settings(max_examples=examples(150), database=None, derandomize=True)
@given(
    metadata=members(),
    before=st.dictionaries(NAMES, VALUES, max_size=2),
    spec=st.none() | VALUES | st.fixed_dictionaries({KEY: FIELDS, "metadata": st.fixed_dictionaries({KEY: FIELDS})}),
    space=st.sampled_from(["", "", "", " ", "\n\t"]),
    ascii_only=st.booleans(),
)
@example(metadata=[("name", "a"), (KEY, [{"a": "}]}"}])], before={}, spec=None, space="", ascii_only=False)
@example(metadata=[(KEY, [{"a": "]"}]), ("name", "a")], before={"x": {KEY: [1]}}, spec=None, space="", ascii_only=True)
@example(metadata=[(KEY, 0), (KEY, []), ("name", "a")], before={}, spec=None, space="", ascii_only=True)
@example(metadata=[("name", "a"), (ESCAPED, 1), (KEY, [])], before={}, spec=None, space="", ascii_only=True)
def test_strip_matches_decode_and_delete(
    metadata: list[tuple[str, Any]], before: dict[str, Any], spec: Any, space: str, ascii_only: bool
) -> None:
    before.pop("metadata", None)
    head = [*before.items()]
    raw = written([*head, ("metadata", None), ("spec", spec)], space=space, ascii_only=ascii_only)
    inner = written(metadata, space=space, ascii_only=ascii_only)
    place = raw.rindex(f'"metadata"{space}:{space}null,')
    raw = raw[:place] + raw[place:].replace("null", inner, 1)
    obj = with_stored(Resource.from_dict({"metadata": {"name": "a"}}), raw.encode())
    assert json.loads(strip_managed_fields(obj).raw) == naive(raw.encode())


def of(*, sort: bool, managed: list[Any], annotation: str = "") -> bytes:
    fields = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": {"text": annotation}, KEY: managed},
        "spec": {"volumes": [{"name": "x"}]},
    }
    if sort:
        fields["metadata"] = {"annotations": {"text": annotation}, KEY: managed, "name": "a"}
    return msgspec.json.encode(fields)


MANAGED: list[Any] = [
    {"manager": "kubelet", "fieldsV1": {"f:status": {'k:{"type":"Ready"}': {".": {}}}}, "subresource": "status"},
    {"manager": "x", "fieldsV1": {"f:metadata": {}}},
]


@pytest.mark.parametrize("sort", [False, True])
@pytest.mark.parametrize("annotation", ["", '{"kind":"Pod","metadata":{"managedFields":[]}}', "\u003c\u2028"])
def test_usual_layout_is_cut_without_decoding(sort: bool, annotation: str) -> None:
    raw = of(sort=sort, managed=MANAGED, annotation=annotation)
    start = raw.index(b',"managedFields":[')
    end = raw.index(b"]", start) + 1
    stripped = strip_managed_fields(Resource.from_json(raw)).raw
    assert stripped == raw[:start] + raw[end:]  # the very bytes: written again, they would have another order


class _AnyMeta(ReceivedMetadata, frozen=True, gc=False, rename="camel"):
    managed_fields: Any = None


class _AnyEnvelope(msgspec.Struct, gc=False):
    metadata: _AnyMeta


def only_before_the_mark(raw: bytes) -> object:
    """Decode as if what follows the mark did not matter."""
    return DECODE(raw[: raw.index(managed_fields._MARK) + len(managed_fields._MARK)] + b"}}")


DECODE: Any = managed_fields._decode_marked
LOOSE: Any = msgspec.json.Decoder(_AnyEnvelope).decode
SEEDED: dict[str, tuple[Any, bytes]] = {
    "the first member of that name is taken": (
        LOOSE,
        b'{"kind":"X","spec":{"managedFields":[1]},"metadata":{"name":"a"}}',
    ),
    "a bracket in a text ends the list": (
        only_before_the_mark,
        b'{"metadata":{"name":"a","managedFields":["]}]"]},"spec":{"x":["]"]}}',
    ),
    "a bracket of an inner list ends the list": (
        only_before_the_mark,
        b'{"metadata":{"name":"a","managedFields":[[1],[2]]}}',
    ),
    "the member may be there twice": (
        LOOSE,
        b'{"metadata":{"managedFields":[],"name":"a","managed\\u0046ields":[1]}}',
    ),
}


@pytest.mark.parametrize("bug", SEEDED)
def test_each_check_is_necessary(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, raw = SEEDED[bug]
    obj = with_stored(Resource.from_dict({"metadata": {"name": "a"}}), raw)
    assert json.loads(strip_managed_fields(obj).raw) == naive(raw)
    monkeypatch.setattr(managed_fields, "_decode_marked", broken)
    try:
        wrong = json.loads(strip_managed_fields(obj).raw) != naive(raw)
    except ValueError:
        wrong = True
    assert wrong


@settings(max_examples=examples(100), database=None, derandomize=True)
@given(text=st.text(st.sampled_from('"]}[{,:\\1a'), max_size=30))
def test_end_of_list_is_found_in_unusual_text(text: str) -> None:
    raw = msgspec.json.encode({"metadata": {"name": "a", KEY: [text, [text]], "x": text}, text: {"y": [text]}})
    obj = with_stored(Resource.from_dict({"metadata": {"name": "a"}}), raw)
    assert json.loads(strip_managed_fields(obj).raw) == naive(raw)
