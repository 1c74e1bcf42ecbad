"""What the schemas of a CustomResourceDefinition become."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from deltaloop.schemas.type_stubs import UnusableDefinitionError, constant_name, module_name, module_text, modules


def definition(spec: dict[str, Any], *, scope: str = "Namespaced", served: bool = True) -> dict[str, Any]:
    properties = {"apiVersion": {"type": "string"}, "metadata": {"type": "object"}, "spec": spec}
    schema = {"type": "object", "properties": properties, "required": ["spec"]}
    return {
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "some.example.com",
            "scope": scope,
            "names": {"kind": "DbCluster", "plural": "dbclusters"},
            "versions": [{"name": "v1", "served": served, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def stub(spec: dict[str, Any], **more: Any) -> str:
    ((module, constants),) = modules([definition(spec, **more)])
    text = module_text(module, package="deltaloop.types")
    ast.parse(text)
    ast.parse(constants)
    return text


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_struct_name_is_derived_from_path() -> None:
    text = stub(struct(keys=struct(dnsNames={"type": "array", "items": struct(name={"type": "string"})})))
    assert "class DbClusterSpecKeysDnsNamesItem(TypedDict, total=False):\n    name: ReadOnly[str]\n" in text
    assert "    dnsNames: ReadOnly[Sequence[DbClusterSpecKeysDnsNamesItem]]\n" in text
    assert "class DbClusterDict(TypedDict, total=False):\n" in text
    assert "    spec: Required[DbClusterSpecDict | AnyFields]\n" in text
    assert text.endswith("\nDB_CLUSTER: Final[DbClusterType]\n")


@pytest.mark.parametrize(
    ("schema", "reading", "writing"),
    [
        ({"type": "integer"}, "int", "int"),
        ({"type": "string", "enum": ["a", 'b"']}, "str", 'Literal["a", "b\\""]'),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "Mapping[str, bool]", "Mapping[str, bool]"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}}, "Any", "Any"),
        ({"type": "object"}, "Any", "Any"),
        ({"x-kubernetes-int-or-string": True}, "int | str", "int | str"),
        ({"type": "array", "items": {"type": "string"}}, "Sequence[str]", "Texts"),
        (
            {"type": "array", "items": {"type": "string", "enum": ["a"]}},
            "Sequence[str]",
            'Sequence[Literal["a"]]',
        ),
        ({"type": "number", "nullable": True}, "float | None", "float"),
    ],
)
def test_types_match_schema(schema: dict[str, Any], reading: str, writing: str) -> None:
    text = stub(struct(it=schema))
    assert f"class DbClusterSpec(TypedDict, total=False):\n    it: ReadOnly[{reading}]\n" in text
    assert f"class DbClusterSpecDict(TypedDict, total=False):\n    it: {writing}\n" in text


def test_defaulted_field_is_optional_in_input_and_required_in_output() -> None:
    spec = {**struct(a={"type": "string"}, b={"type": "string", "default": "x"}), "required": ["a", "b"]}
    text = stub(spec)
    assert "    a: Required[ReadOnly[str]]\n    b: Required[ReadOnly[str]]\n" in text
    assert "    a: Required[str]\n    b: str\n" in text


def test_colliding_struct_names_are_numbered() -> None:
    text = stub(struct(**{"a-b": struct(x={"type": "string"}), "aB": struct(y={"type": "string"})}))
    assert '"a-b": ReadOnly[DbClusterSpecAB]' in text
    assert '"aB": ReadOnly[DbClusterSpecAB2]' in text or "aB: ReadOnly[DbClusterSpecAB2]" in text


def test_constants_are_generated_for_served_versions_only() -> None:
    ((_, constants),) = modules([definition(struct(), scope="Cluster")])
    arguments = '"some.example.com", "v1", "DbCluster", "dbclusters", namespaced=False'
    assert f"DB_CLUSTER: Final = ResourceType[Resource]({arguments})\n" in constants
    assert modules([definition(struct(), served=False)]) == []


def test_names() -> None:
    assert module_name("cert-manager.io", "v1") == "cert_manager_io_v1"
    assert constant_name("HTTPRoute") == "HTTP_ROUTE"
    assert constant_name("CertificateRequest") == "CERTIFICATE_REQUEST"


HOSTILE = ['"""\nraise SystemExit\n"""', "a\nb", "x = 1; y", "A B", "é", "../up", "", 'a"]', "ﬁeld"]


@pytest.mark.parametrize("path", ["spec.group", "spec.names.kind", "spec.names.plural", "spec.versions[*].name"])
def test_names_that_a_server_rejects_are_rejected(path: str) -> None:
    for name in HOSTILE:
        crd = definition({})
        *way, field = path.replace("[*]", ".0").split(".")
        part: Any = crd
        for step in way:
            part = part[int(step) if step.isdigit() else step]
        part[field] = name
        with pytest.raises(UnusableDefinitionError) as raised:
            modules([crd])
        assert (raised.value.path, raised.value.value) == (path, name)


def test_hostile_properties_and_enums_are_quoted() -> None:
    names = [*HOSTILE, "\\", "'''", "\x00", "\x85", "\u2028", "__hidden", "None", "Any", "DbClusterDict", "²"]
    schema = struct(**{name: struct(**{name: {"type": "string", "enum": names}}) for name in names})
    tree = ast.parse(stub(schema))
    literals = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert set(names) <= literals
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.ClassDef)
    assert all(isinstance(node, allowed) for node in tree.body)


@pytest.mark.parametrize(("kind", "name"), [("None", "NoneObject"), ("VPA", "VPAObject"), ("My-Kind", "My_Kind")])
def test_invalid_class_names_of_kinds_are_replaced(kind: str, name: str) -> None:
    crd = definition({})
    crd["spec"]["names"]["kind"] = kind
    ((module, constants),) = modules([crd])
    assert module.kinds[0].name == name
    ast.parse(module_text(module, package="deltaloop.types"))
    assert f'"{kind}"' in constants
    ast.parse(constants)
