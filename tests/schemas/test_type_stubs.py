"""Stubs: what a struct and a kind become."""

from __future__ import annotations

import ast

import pytest

from deltaloop.schemas.type_stubs import (
    Field,
    Kind,
    ListOf,
    MapOf,
    Module,
    Nullable,
    Scalar,
    Struct,
    StructReference,
    class_name,
    module_text,
)

TEXT = Scalar("str")


def written(*structs: Struct, kinds: tuple[Kind, ...] = ()) -> str:
    text = module_text(Module("a_v1", "About.", structs, kinds), package="some.where")
    ast.parse(text)
    return text


def struct(*fields: Field, read_only: bool = False) -> Struct:
    return Struct("Spec", fields, read_only)


def test_struct_has_output_and_input_types() -> None:
    text = written(struct(Field("name", TEXT, always=True, required=True), Field("size", Scalar("int"))))
    assert text == (
        '"""About."""\n\n\nfrom typing_extensions import ReadOnly, Required, TypedDict\n\n\n'
        "class Spec(TypedDict, total=False):\n    name: Required[ReadOnly[str]]\n    size: ReadOnly[int]\n\n"
        "class SpecDict(TypedDict, total=False):\n    name: Required[str]\n    size: int\n"
    )


@pytest.mark.parametrize(
    ("kind", "reading", "writing"),
    [
        (StructReference("Other"), "Other", "OtherDict | AnyFields"),
        (StructReference("Other", "b_v1"), "b_v1.Other", "b_v1.OtherDict | AnyFields"),
        (ListOf(StructReference("Other")), "Sequence[Other]", "Sequence[OtherDict | AnyFields]"),
        (ListOf(TEXT), "Sequence[str]", "Texts"),
        (MapOf(ListOf(TEXT)), "Mapping[str, Sequence[str]]", "Mapping[str, Texts]"),
        (Nullable(ListOf(Scalar("int"))), "Sequence[int] | None", "Sequence[int]"),
        (Scalar("str", "str | float"), "str", "str | float"),
        (ListOf(Scalar("str", "str | float")), "Sequence[str]", "list[str | float] | tuple[str | float, ...]"),
    ],
)
def test_nested_types_have_output_and_input_names(
    kind: Scalar | StructReference | ListOf | MapOf | Nullable, reading: str, writing: str
) -> None:
    text = written(struct(Field("it", kind)))
    assert f"    it: ReadOnly[{reading}]\n" in text
    assert f"    it: {writing}\n" in text


def test_invalid_identifier_uses_functional_typed_dict() -> None:
    for name in ("$ref", "from", "x-kubernetes-list-type", "str", "bool"):
        text = written(struct(Field(name, TEXT)))
        assert (
            f'Spec = TypedDict(\n    "Spec",\n    {{\n        "{name}": ReadOnly[str],\n    }},\n    total=False,\n)'
            in text
        )


def test_read_only_struct_has_no_input_type() -> None:
    assert "SpecDict" not in written(struct(Field("name", TEXT), read_only=True))


def test_kind_has_typed_accessors_and_input_type() -> None:
    fields = (Field("kind", TEXT, always=True), Field("spec", StructReference("Spec")))
    text = written(struct(Field("size", Scalar("int"))), kinds=(Kind("Thing", "a/v1", fields),))
    assert '    def __getitem__(self, field: Literal["spec"]) -> Spec: ...\n' in text
    assert '    def get(self, field: Literal["kind"], default: None = None) -> str: ...\n' in text
    assert '    def get(self, field: Literal["spec"], default: None = None) -> Spec | None: ...\n' in text
    assert '    def get(self, field: Literal["spec"], default: Spec | AnyFields) -> Spec: ...\n' in text
    assert "class ThingDict(TypedDict, total=False):\n    kind: str\n    spec: SpecDict | AnyFields\n" in text
    assert (
        "class ThingType(ResourceType[Thing], frozen=True):\n    def _accepts(self, obj: ThingDict) -> Thing: ...\n"
        in text
    )


def test_input_type_may_differ_from_output_type() -> None:
    text = written(
        struct(
            Field(
                "metadata", StructReference("StoredMeta", "meta_v1"), writing=StructReference("ObjectMeta", "meta_v1")
            )
        )
    )
    assert "metadata: ReadOnly[meta_v1.StoredMeta]" in text
    assert "metadata: meta_v1.ObjectMetaDict | AnyFields" in text
    assert "from some.where import meta_v1\n" in text


def test_class_name_is_derived_from_field() -> None:
    assert class_name("dnsNames") == "DnsNames"
    assert class_name("x-kubernetes-list") == "XKubernetesList"
    assert class_name("1st") == "Field1st"
