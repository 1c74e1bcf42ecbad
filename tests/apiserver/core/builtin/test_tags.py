"""What the tool makes of the tags of Go types, and that the tables have the rules that they name."""

from __future__ import annotations

from tools.builtin_tables.tags import Tags

from deltaloop.apiserver.builtin_tables import builtin_tables
from deltaloop.apiserver.core.kinds.resources import BuiltInTypes
from deltaloop.schemas.checking import RuledType
from deltaloop.schemas.type_table import named_checks

SOURCE = """
// +k8s:beta(since: "1.37")=+k8s:enum
type Kind string

const (
	KindB Kind = "B"
	// The first.
	KindA Kind = "A"
)

type Part struct {
	metav1.TypeMeta `json:",inline"`
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What it is.
	// +required
	// +k8s:required
	// +k8s:beta(since: "1.37")=+k8s:immutable
	Kind Kind `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// +k8s:alpha(since: "1.37")=+k8s:required
	Later *string `json:"later" protobuf:"bytes,2,opt,name=later"`
	Kinds []Kind `json:"kinds" protobuf:"bytes,2,opt,name=kinds"`
	// +k8s:optional
	// +k8s:ifEnabled(On)=+k8s:minimum=3
	// +k8s:ifDisabled(On)=+k8s:minimum=4
	// +k8s:ifEnabled(Off)=+k8s:maximum=5
	Number *int32 `json:"number,omitempty" protobuf:"varint,3,opt,name=number"`

	// +featureGate=Off
	// +k8s:listType=map
	// +k8s:maxItems=7
	// +k8s:format="k8s-short-name"
	Names []string `json:"names" protobuf:"bytes,4,rep,name=names"`

	Plain []string `json:"plain" protobuf:"bytes,5,rep,name=plain"`
}
"""


def test_validation_tags_are_parsed() -> None:
    tags = Tags({"Off"})
    tags.read(SOURCE, "a.v1")
    assert tags.rules == {
        "a.v1.Part": {
            "kind": {"required": True, "fixed": True, "enum": ["A", "B"]},
            "later": {},
            "kinds": {"each": {"enum": ["A", "B"]}},
            "number": {"optional": True, "min": 3},
            "names": {"longest": 7, "checks": ["label"]},
        }
    }
    assert tags.off == {"a.v1.Part": ["names"]}
    assert tags.unread == {"listType": 1}


def test_every_named_check_belongs_to_a_strategy() -> None:
    tables = builtin_tables()
    types = BuiltInTypes(tables)
    reached: set[str] = set()
    for entry in tables.kinds:
        for found in types.rules(entry.type).types:
            reached |= _names(found, set())
    ruled = {name for name, struct in tables.types.items() if struct.rules}
    assert ruled <= reached
    assert {*named_checks(tables.types)} == types.checks.keys()


def test_rules_reference_existing_fields() -> None:
    for name, struct in builtin_tables().types.items():
        said = {field for field in (*struct.rules, *struct.tags) if field[0] != "."}
        assert said <= struct.fields.keys(), name


def _names(type_: RuledType, seen: set[str]) -> set[str]:
    if type_.name not in seen:
        seen.add(type_.name)
        for field in type_.fields:
            _names(field.below, seen)
    return seen
