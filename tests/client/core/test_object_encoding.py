from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource
from deltaloop.client.core.object_encoding import encode_object
from tests.having import having


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


def test_typed_object_is_encoded() -> None:
    outgoing = encode_object(kinds.POD, Typed(Meta("a", "n"), dns_policy="Default"))
    assert fields(outgoing.body) == {**WANTED, "dnsPolicy": "Default"}


def test_encoding_does_not_change_given_mapping() -> None:
    obj = {"metadata": {"name": "a"}}
    encode_object(kinds.POD, obj)
    assert obj == {"metadata": {"name": "a"}}


def test_kind_of_object_is_kept() -> None:
    outgoing = encode_object(kinds.POD, {"apiVersion": "v2", "kind": "Other", "metadata": {"generateName": "a-"}})
    assert fields(outgoing.body)["apiVersion"] == "v2"
    assert outgoing.name == ""


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        ({}, "metadata"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"name": 5}}, "metadata.name"),
        ({"metadata": {"name": "a", "namespace": 5}}, "metadata.name"),
        ({"metadata": {"name": "a"}, "spec": object()}, "spec"),
        (5, ""),
        (object(), ""),
    ],
)
def test_invalid_object_is_rejected_with_the_path(obj: object, path: str) -> None:
    with pytest.raises(MalformedObjectError, check=having(path=path, given=True)):
        encode_object(kinds.POD, obj)


def test_value_without_json_form_is_named_by_path() -> None:
    for obj in ({"metadata": {"name": "a"}, "spec": {"x": [{"y": float("nan")}]}}, Typed(Meta("a"), float("inf"))):  # type: ignore[arg-type]
        with pytest.raises(MalformedObjectError, match=r" (spec\.x\[0\]\.y|dnsPolicy): "):
            encode_object(kinds.POD, obj)
