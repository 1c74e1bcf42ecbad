"""Metadata only: what is cut off an object, and what is left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.client.core.metadata_only import metadata_of, metadata_of_list
from deltaloop.client.verbs.resource_list import ResourceList

METADATA = {"name": "a", "namespace": "b", "resourceVersion": "7", "uid": "u", "labels": {"ä": "1"}}


def test_object_is_reduced_to_metadata() -> None:
    whole = Resource.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": METADATA, "spec": {"x": 1}}, POD)
    cut = metadata_of(whole)
    assert (
        cut.raw
        == json.dumps(
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": METADATA},
            separators=(",", ":"),
            ensure_ascii=False,
        ).encode()
    )
    assert (cut.metadata, cut.resource_type, cut.kind) == (whole.metadata, POD, "PartialObjectMetadata")


def test_metadata_object_is_unchanged() -> None:
    partial = Resource.from_dict(
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": METADATA}, POD
    )
    assert metadata_of(partial) is partial


@pytest.mark.parametrize("kind", ["1", "null", "[]", '"Pod"'])
def test_object_with_invalid_kind_is_reduced_to_metadata(kind: str) -> None:
    odd = Resource.from_json(b'{"metadata":{"name":"a"},"kind":%s,"data":{"metadata":{}}}' % kind.encode(), POD)
    assert metadata_of(odd).to_dict()["metadata"] == {"name": "a"}


def test_reduced_list_keeps_its_metadata() -> None:
    whole = Resource.from_dict({"metadata": METADATA, "spec": {}}, POD)
    page = ResourceList((whole,), "9", "token", 3)
    cut = metadata_of_list(page)
    assert (cut.resource_version, cut.continue_, cut.remaining_item_count) == ("9", "token", 3)
    assert cut.items == (metadata_of(whole),)


@given(st.dictionaries(st.sampled_from(["name", "uid", "annotations"]), st.text(), max_size=3), st.text())
def test_metadata_is_independent_of_other_fields(metadata: dict[str, str], data: str) -> None:
    metadata.pop("annotations", None)
    whole = Resource.from_dict({"data": {"metadata": data}, "metadata": metadata, "z": data}, POD)
    assert metadata_of(whole).to_dict()["metadata"] == metadata
    assert metadata_of(whole).metadata == whole.metadata
