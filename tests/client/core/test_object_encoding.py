from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.client.core.object_encoding import encode_object


class Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""


class Typed(msgspec.Struct, rename="camel"):
    metadata: Meta
    dns_policy: str = ""


def fields(body: bytes) -> dict[str, Any]:
    return msgspec.json.decode(body, type=dict[str, Any])


WANTED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"name": "a", "namespace": "n"}},
        {"apiVersion": "", "kind": None, "metadata": {"name": "a", "namespace": "n"}},
        Resource.from_json(b'{"metadata":{"name":"a","namespace":"n"}}'),
        Resource.from_json(b'{"metadata":{"name":"a","namespace":"n"}}').view(),
        {"metadata": Resource.from_json(b'{"metadata":{"name":"a","namespace":"n"}}')["metadata"]},
    ],
)
def test_kind_and_version_are_filled_in(obj: object) -> None:
    outgoing = encode_object(kinds.POD, obj)
    assert fields(outgoing.body) == WANTED
    assert (outgoing.name, outgoing.namespace) == ("a", "n")


def test_a_typed_object() -> None:
    outgoing = encode_object(kinds.POD, Typed(Meta("a", "n"), dns_policy="Default"))
    assert fields(outgoing.body) == {**WANTED, "dnsPolicy": "Default"}


def test_the_callers_mapping_is_not_changed() -> None:
    obj = {"metadata": {"name": "a"}}
    encode_object(kinds.POD, obj)
    assert obj == {"metadata": {"name": "a"}}


def test_what_the_object_says_itself_stays() -> None:
    outgoing = encode_object(kinds.POD, {"apiVersion": "v2", "kind": "Other", "metadata": {"generateName": "a-"}})
    assert fields(outgoing.body)["apiVersion"] == "v2"
    assert outgoing.name == ""


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({}, "has no metadata"),
        ({"metadata": "x"}, "has no metadata"),
        ({"metadata": {"name": 5}}, "must be text"),
        ({"metadata": {"name": "a", "namespace": 5}}, "must be text"),
        ({"metadata": {"name": "a"}, "spec": object()}, "type object is not JSON"),
        (5, "a int is not a v1/Pod object"),
        (object(), "cannot be written as JSON"),
    ],
)
def test_what_is_no_object(obj: object, message: str) -> None:
    with pytest.raises(MalformedObjectError, match=message):
        encode_object(kinds.POD, obj)


def test_the_path_of_what_json_cannot_say_is_named() -> None:
    for obj in ({"metadata": {"name": "a"}, "spec": {"x": [{"y": float("nan")}]}}, Typed(Meta("a"), float("inf"))):  # type: ignore[arg-type]
        with pytest.raises(
            MalformedObjectError, match=r"the v1/Pod object .* at (spec\.x\[0\]\.y|dnsPolicy): a number"
        ):
            encode_object(kinds.POD, obj)
