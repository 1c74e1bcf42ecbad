"""Bodies written by hand; ``make -C lab test-go`` compares all kinds with Go's own samples."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api import kinds
from deltaloop.api.status import BadRequestError
from deltaloop.apiserver.builtin_tables import builtin_types
from deltaloop.apiserver.core.wire.protobuf import MAX_DEPTH, TypeOf, decode_body
from deltaloop.schemas.type_table import TypeTable, parse_types
from deltaloop.schemas.types import TypeNode
from tests.apiserver.core.protobuf_writer import body, double, entry, message, named, number, text, varint

TABLE = builtin_types().body
# A few messages with everything that a table can say.
TOYS = TypeTable(
    parse_types(
        {
            "v1.Toy": {
                "fields": {
                    "name": "string", "count": "int32", "big": "int64", "flag": "boolean", "maybe": "int32",
                    "must": "boolean", "blob": "bytes", "ratio": "number",
                },
                "numbers": [1, 2, 3, 4, 5, 6, 7, 8],
                "zeros": {"count": 0, "must": None},
                "omit_zero": ["name", "big", "flag", "blob"],
            },
            "v1.Toy2": {
                "fields": {
                    "numbers": {"list": "int32"}, "names": {"list": "string"}, "toys": {"list": "#v1.Toy2"},
                    "labels": {"map": "string"}, "blobs": {"map": "bytes"}, "inner": "#v1.Inner", "child": "#v1.Toy2",
                },
                "numbers": [1, 2, 3, 4, 5, 6, 7],
                "zeros": {"names": None, "blobs": None, "inner": {}},
            },
            "v1.Inner": {
                "fields": {
                    "word": "string",
                    "size": "quantity", "port": "intstr", "any": "any", "each": {"map": "quantity"},
                    "extra": {"map": {"list": "string", "carrier": "Strings"}},
                    "when": "time", "since": "time", "micro": "micro_time", "always": "bytes",
                },
                "numbers": [1, [2, "Hoisted", [1, 2, 3, 4, 5]], 3, 4, 5, 6],
                "zeros": {"word": "", "size": "0", "any": None, "since": None, "always": None},
                "omit_zero": ["when"],
            },
            "Strings": {"fields": {"items": {"list": "string"}}, "numbers": [1]},
        }
    )
)  # fmt: skip


def toy(api_version: str, kind: str) -> TypeNode:
    return TOYS.struct(f"{api_version}.{kind}")


def read(kind: str, *parts: bytes, table: TypeOf = toy) -> dict[str, Any]:
    fields = decode_body(body("v1", kind, *parts), table, api_version="v1", kind=kind)
    assert (fields.pop("kind"), fields.pop("apiVersion")) == (kind, "v1")
    return fields


def refusal(sent: bytes, *, table: TypeOf = TABLE, kind: str = "ConfigMap") -> str:
    with pytest.raises(BadRequestError) as caught:
        decode_body(sent, table, api_version="v1", kind=kind)
    assert caught.value.status.code == 400
    return caught.value.status.message


def malformed(*parts: bytes, kind: str = "Toy") -> str:
    refused = refusal(body("v1", kind, *parts), table=toy, kind=kind)
    start = f'{kind} in version "v1" cannot be handled as a {kind}: '
    assert refused.startswith(start)
    return refused.removeprefix(start)


def test_empty_scalars_are_omitted_unless_go_always_writes_them() -> None:
    empty = {"count": 0, "must": None}
    assert read("Toy") == empty
    sent = (text(1, ""), number(2, 0), number(3, 0), number(4, 0), message(7))
    assert read("Toy", *sent) == empty
    full = (text(1, "é"), number(2, 2**32 - 1), number(3, -5), number(4, 1), message(7, b"\x00\xff"), double(8, 2.5))
    assert read("Toy", *full) == {
        "name": "é", "count": -1, "big": -5, "flag": True, "must": None, "blob": "AP8=", "ratio": 2.5,
    }  # fmt: skip


def test_sent_zero_values_of_pointers_are_kept() -> None:
    sent = read("Toy", number(5, 0), number(6, 0), double(8, 0.0))
    assert sent == {"count": 0, "maybe": 0, "must": False, "ratio": 0}


def test_whole_floats_are_written_as_go_writes_them() -> None:
    assert json.dumps(read("Toy", double(8, -3.0))["ratio"]) == "-3"
    assert read("Toy", double(8, 1e30))["ratio"] == 1e30
    assert malformed(double(8, float("nan"))) == "json: unsupported value: a number that is not finite"


def test_last_scalar_wins_and_struct_parts_are_merged() -> None:
    assert read("Toy", text(1, "a"), text(1, "b"))["name"] == "b"
    inner = read("Toy2", message(6, text(1, "w")), message(6, message(6, b"x")))["inner"]
    assert (inner["word"], inner["always"]) == ("w", "eA==")


def test_lists_are_read_packed_and_unpacked() -> None:
    packed = message(1, varint(1), varint(2**64 - 1))
    assert read("Toy2", number(1, 7), packed)["numbers"] == [7, 1, -1]
    assert "numbers" not in read("Toy2", message(1))
    assert read("Toy2")["names"] is None
    assert read("Toy2", text(2, ""), text(2, "a"))["names"] == ["", "a"]


def test_map_entries_can_omit_key_or_value() -> None:
    labels = (
        entry(4, "a", text(2, "b")),
        message(4, text(1, "c")),
        message(4, text(2, "d")),
        entry(4, "a", text(2, "e")),
    )
    assert read("Toy2", *labels)["labels"] == {"a": "e", "c": "", "": "d"}
    assert read("Toy2", message(5, text(1, "x")))["blobs"] == {"x": ""}
    assert read("Toy2")["blobs"] is None
    sizes = message(2, message(4, text(1, "cpu")), entry(4, "memory", message(2, text(1, "1Gi"))))
    assert read("Inner", sizes)["each"] == {"cpu": "0", "memory": "1Gi"}
    strings = message(2, entry(5, "k", message(2, text(1, "v"), text(1, ""))), message(5, text(1, "none")))
    assert read("Inner", strings)["extra"] == {"k": ["v", ""], "none": []}


def test_structs_are_always_present_and_inlined_structs_are_hoisted() -> None:
    inner = {"word": "", "size": "0", "any": None, "since": None, "always": None}
    assert read("Toy2") == {"names": None, "blobs": None, "inner": inner}
    child = {"names": None, "blobs": None, "inner": inner}
    assert read("Toy2", message(7))["child"] == child
    assert read("Toy2", message(3))["toys"] == [child]


def test_times_are_utc_and_none_is_null() -> None:
    inner = read(
        "Inner", message(3), message(4, number(1, 0), number(2, 0)), message(5, number(1, 1), number(2, 2_999))
    )
    assert "when" not in inner
    assert (inner["since"], inner["micro"]) == ("1970-01-01T00:00:00Z", "1970-01-01T00:00:01.000002Z")
    assert read("Inner", message(3, number(1, -1)))["when"] == "1969-12-31T23:59:59Z"
    assert read("Inner", message(5, number(1, 5), number(2, -1_500)))["micro"] == "1970-01-01T00:00:04.999999Z"
    assert read("Inner", message(5))["micro"] is None
    assert read("Inner", message(4, number(1, -62_135_596_800)))["since"] is None
    assert malformed(message(4, number(1, 2**40)), kind="Inner") == "a time is outside of the years 1 to 9999"
    assert malformed(message(5, number(1, 2**62)), kind="Inner") == "a time is outside of the years 1 to 9999"


def test_quantities_ports_and_json() -> None:
    def hoisted(*parts: bytes) -> dict[str, Any]:
        return read("Inner", message(2, *parts))

    assert hoisted(message(1, text(1, "100m")))["size"] == "100m"
    assert hoisted(message(2, number(1, 0), number(2, 80), text(3, "")))["port"] == 80
    assert hoisted(message(2, number(1, 1), number(2, 0), text(3, "50%")))["port"] == "50%"
    assert hoisted(message(2))["port"] == 0
    assert hoisted(message(3, message(1, b'{"a":[1,null]}')))["any"] == {"a": [1, None]}
    assert hoisted(message(3, message(1)))["any"] is None
    assert malformed(message(2, message(1, text(1, "much"))), kind="Inner").startswith("quantities must match")
    assert malformed(message(2, message(2, number(1, 2))), kind="Inner") == "impossible IntOrString.Type"
    assert malformed(message(2, message(3, text(1, "{"))), kind="Inner") == "a JSON field must contain valid JSON"
    deep = "[" * 100_000
    assert malformed(message(2, message(3, text(1, deep))), kind="Inner").startswith("a JSON field ")


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    unknown = (number(99, 1), double(98, 1.0), text(97, "x"), b"\xb3\x06\x08\x01\xb4\x06", b"\xad\x06abcd")
    assert read("Toy", *unknown) == {"count": 0, "must": None}


def test_invalid_utf_8_gets_replacement_characters() -> None:
    assert read("Toy", message(1, b"a\xff"))["name"] == "a\ufffd"


@pytest.mark.parametrize(
    ("part", "text_of_error"),
    [
        (number(1, 5), "proto: wrong wireType = 0 for field Name"),
        (text(2, "5"), "proto: wrong wireType = 2 for field Count"),
        (number(8, 1), "proto: wrong wireType = 0 for field Ratio"),
        (b"\x0a\x05a", "unexpected EOF"),
        (b"\x00", "proto: Toy: illegal tag 0 (wire type 0)"),
    ],
)
def test_malformed_messages_give_the_real_error_messages(part: bytes, text_of_error: str) -> None:
    assert malformed(part) == text_of_error


def test_invalid_envelopes_are_rejected() -> None:
    start = "the object provided is unrecognized (must be of type ConfigMap): "
    assert refusal(b"") == f"{start}empty data"
    assert refusal(b"k8s\x00") == f"{start}empty body"
    wrong = f"{start}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    assert refusal(b'{"kind":"ConfigMap"}') == wrong
    assert refusal(b"k8s\x00\x0a\x7f") == f"{start}unexpected EOF"
    assert refusal(b"k8s\x00" + number(2, 1)) == f"{start}proto: wrong wireType = 0 for field Raw"


def test_unknown_kind_is_truncated_in_the_error() -> None:
    refused = refusal(body("example.com/v2", "W" * 5_000))
    assert refused.startswith(f'{"W" * 63} in version "v2" cannot be handled as a ConfigMap: no kind "')
    assert len(refused) < 300


def test_missing_kind_and_version_come_from_the_path() -> None:
    envelope = b"k8s\x00" + message(2, named("a"))
    assert decode_body(envelope, TABLE, api_version="v1", kind="Secret") == {
        "kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"},
    }  # fmt: skip
    assert decode_body(b"k8s\x00" + message(1), TABLE, api_version="v1", kind="ConfigMap")["metadata"] == {}


def test_depth_of_recursive_messages_is_bounded() -> None:
    sent = b""
    for _ in range(MAX_DEPTH - 4):
        sent = message(7, sent)
    assert read("Toy2", sent)["child"]["child"]
    for _ in range(5):
        sent = message(7, sent)
    assert malformed(sent, kind="Toy2") == f"messages are nested more than {MAX_DEPTH} deep"


@pytest.mark.parametrize(
    "many",
    [message(3) * 400, message(1, b"\x01" * 1_100), entry(4, "a", text(2, "b")) * 400, number(99, 1) * 1_100],
    ids=["structs", "packed numbers", "entries", "unknown fields"],
)
def test_number_of_values_per_body_is_bounded(many: bytes) -> None:
    sent = body("v1", "Toy2", many)
    decode_body(sent, toy, api_version="v1", kind="Toy2")
    with pytest.raises(BadRequestError, match="the body has more than 1000 values"):
        decode_body(sent, toy, api_version="v1", kind="Toy2", max_values=1_000)


ROLE = {
    "kind": "Role",
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "metadata": {"name": "reader"},
    "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}],
}


def test_role_from_kubectl() -> None:
    rule = message(2, text(1, "get"), text(1, "list"), text(2, ""), text(3, "pods"))
    sent = body("rbac.authorization.k8s.io/v1", "Role", named("reader"), rule)
    assert decode_body(sent, TABLE, api_version="", kind="Role") == ROLE


def test_deployment_from_kubectl() -> None:
    labels = entry(1, "app", text(2, "web"))
    container = message(2, text(1, "web"), text(2, "web:1"), text(5, ""), message(8), text(14, ""), number(16, 0))
    meta = (text(1, ""), entry(11, "app", text(2, "web")))
    template = message(3, message(1, *meta), message(2, container, text(3, ""), number(11, 0)))
    spec = message(2, number(1, 2), message(2, labels), template, message(4, text(1, "")), number(5, 0), number(7, 0))
    status = message(3, number(1, 0), number(2, 0))
    made = decode_body(body("apps/v1", "Deployment", named("web"), spec, status), TABLE, api_version="", kind="")
    assert made == {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {}}]},
            },
            "strategy": {},
        },
        "status": {},
    }


def test_special_types_of_crd_schemas() -> None:
    def schema(*parts: bytes) -> Any:
        validation = message(4, message(1, *parts))
        version = message(7, text(1, "v1"), number(2, 1), number(3, 1), validation)
        sent = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", named("a"), message(2, version))
        made: Any = decode_body(sent, TABLE, api_version="", kind="")
        return made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    string = text(5, "string")
    assert schema(message(30, number(1, 1))) == {"additionalProperties": True}
    assert schema(message(30, number(1, 0), message(2, string))) == {"additionalProperties": {"type": "string"}}
    assert schema(message(30)) == {"additionalProperties": False}
    assert schema(message(24, message(1, string))) == {"items": {"type": "string"}}
    assert schema(message(24, message(2, string))) == {"items": [{"type": "string"}]}
    assert schema(entry(32, "a", message(2, text(2, "b")))) == {"dependencies": {"a": ["b"]}}
    assert schema(entry(32, "a", message(2, message(1, string)))) == {"dependencies": {"a": {"type": "string"}}}
    assert schema(message(8, message(1, b'{"a":1}'))) == {"default": {"a": 1}}


def test_delete_options_are_the_same_in_every_api_version() -> None:
    sent = (number(1, 0), message(2, text(1, "u")), text(4, "Background"))
    for api_version in ("v1", "apps/v1", "example.com/v1alpha1"):
        made = decode_body(body(api_version, "DeleteOptions", *sent), TABLE, api_version="", kind="")
        assert made == {
            "kind": "DeleteOptions",
            "apiVersion": api_version,
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Background",
        }


def test_every_built_in_kind_is_in_the_table() -> None:
    for kind in kinds.BUILT_IN:
        made = decode_body(body(kind.api_version, kind.kind, named("a")), TABLE, api_version="", kind="")
        assert made["metadata"] == {"name": "a"}, kind


BESIDES = (
    ("v1", "DeleteOptions"),
    ("v1", "Status"),
    ("authentication.k8s.io/v1", "TokenRequest"),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    ("autoscaling/v1", "Scale"),
    ("policy/v1", "Eviction"),
)


@pytest.mark.parametrize(("api_version", "kind"), BESIDES)
def test_every_request_type_is_in_the_table(api_version: str, kind: str) -> None:
    assert TABLE(api_version, kind) is not None


def decodes_or_refuses(sent: bytes) -> None:
    with suppress(BadRequestError):
        made = decode_body(sent, TABLE, api_version="v1", kind="Pod")
        assert msgspec.json.decode(msgspec.json.encode(made), type=dict)


@given(st.binary(max_size=200))
def test_any_bytes_give_an_object_or_a_400(sent: bytes) -> None:
    decodes_or_refuses(sent)
    decodes_or_refuses(b"k8s\x00" + sent)
    for kind in ("Pod", "Event", "CustomResourceDefinition"):
        api_version = "apiextensions.k8s.io/v1" if kind.startswith("Custom") else "v1"
        decodes_or_refuses(body(api_version, kind, sent))


NUMBERS = st.integers(1, 40)
LEAVES = st.one_of(
    st.builds(number, NUMBERS, st.integers(0, 2**64 - 1)),
    st.builds(text, NUMBERS, st.text(max_size=5)),
    st.builds(double, NUMBERS, st.floats()),
)


def nested(field: int, parts: list[bytes]) -> bytes:
    return message(field, *parts)


KINDS = sorted({*builtin_types().kinds, *BESIDES})
# Well-formed fields that fit no kind in particular.
FIELDS = st.recursive(LEAVES, lambda inner: st.builds(nested, NUMBERS, st.lists(inner, max_size=3)), max_leaves=6)


@given(st.lists(FIELDS, max_size=4), st.sampled_from(KINDS))
def test_any_message_of_any_kind_gives_an_object_or_a_400(sent: list[bytes], kind: tuple[str, str]) -> None:
    decodes_or_refuses(body(*kind, *sent))


WHOLE = body(
    "v1", "Pod", named("a"), message(2, message(2, text(1, "c"), message(8, entry(1, "cpu", message(2, text(1, "1"))))))
)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.integers(0, len(WHOLE)))
def test_damaged_body_gives_an_object_or_a_400(at: int, byte: int, end: int) -> None:
    decodes_or_refuses((WHOLE[:at] + bytes((byte,)) + WHOLE[at + 1 :])[:end])
