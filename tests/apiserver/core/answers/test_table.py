from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core.answers.table import (
    Output,
    Shape,
    negotiate,
    parse_include_object,
    partial_list,
    partial_object,
    to_table,
)
from deltaloop.apiserver.core.served_resource import ServedResource
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import served_foo

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
TABLE_BETA = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PROTOBUF = "application/vnd.kubernetes.protobuf"
NOW = 1000.0


def config_maps() -> ServedResource:
    found = built_in_registry().find("", "v1", "configmaps")
    assert found is not None
    return found


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "resourceVersion": "7", "creationTimestamp": "1970-01-01T00:15:00Z"}
    return {"metadata": metadata, "data": data}


def foo(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "f", "creationTimestamp": "1970-01-01T00:16:00Z"}
    return {"apiVersion": "samples.example.com/v1", "kind": "Foo", "metadata": metadata, **fields}


@pytest.mark.parametrize(
    ("accept", "shape", "output"),
    [
        ("", "object", Output()),
        ("*/*", "list", Output()),
        ("application/json", "object", Output()),
        (f"{TABLE},{TABLE_BETA},application/json", "list", Output("table", "v1")),
        (f"{TABLE_BETA},{TABLE}", "list", Output("table", "v1beta1")),
        (f"application/json,{TABLE}", "list", Output()),
        (f"{PROTOBUF},application/json", "object", Output()),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}", "object", Output("table")),
        (PROTOBUF, "object", None),
        ("text/html", "object", None),
        ("application/json;as=Poem;v=v1;g=meta.k8s.io", "object", None),
        ("application/json;as=Poem;v=v1;g=meta.k8s.io,application/json", "object", Output()),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "object", Output()),
        ("application/json;as=Table;v=v1;g=other.io", "object", None),
        ("application/json;stream=watch", "watch", Output()),
        (PARTIAL, "object", Output("partial")),
        (PARTIAL, "watch", Output("partial")),
        (PARTIAL, "list", None),
        (f"{PARTIAL},application/json", "list", None),
        (PARTIAL_LIST, "list", Output("partial_list")),
        (PARTIAL_LIST, "object", None),
        (PARTIAL_LIST, "watch", None),
        ("application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", "object", Output("partial", "v1beta1")),
    ],
)
def test_first_supported_accept_clause_is_used(accept: str, shape: Shape, output: Output | None) -> None:
    assert negotiate(accept, shape=shape) == output


def test_table_of_a_list() -> None:
    metadata = {"resourceVersion": "9", "continue": "abc", "remainingItemCount": 4}
    table = to_table(config_maps(), [config_map("a", k="v"), config_map("b")], now=NOW, metadata=metadata)
    assert (table["kind"], table["apiVersion"], table["metadata"]) == ("Table", "meta.k8s.io/v1", metadata)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    data = table["columnDefinitions"][1]
    assert data["description"] == ""
    assert {name: data[name] for name in ("name", "type", "format", "priority")} == {
        "name": "Data",
        "type": "string",
        "format": "",
        "priority": 0,
    }
    assert [row["cells"] for row in table["rows"]] == [["a", 1, "100s"], ["b", 0, "100s"]]
    assert table["rows"][0]["object"] == partial_object(config_map("a"))


def test_table_of_one_object_has_its_resource_version() -> None:
    assert to_table(config_maps(), [config_map("a")], now=NOW)["metadata"] == {"resourceVersion": "7"}
    assert to_table(config_maps(), [], now=NOW, metadata={})["rows"] == []


def test_later_events_of_a_watch_have_no_columns() -> None:
    assert to_table(config_maps(), [config_map("a")], now=NOW, with_columns=False)["columnDefinitions"] is None


def test_include_object_controls_the_object_of_a_row() -> None:
    def row(value: str) -> Any:
        (row,) = to_table(config_maps(), [config_map("a", k="v")], now=NOW, include_object=parse_include_object(value))[
            "rows"
        ]
        return row["object"]

    assert row("") == row("Metadata")
    assert row("Metadata")["kind"] == "PartialObjectMetadata"
    assert "data" not in row("Metadata")
    assert row("Object") == {**config_map("a", k="v"), "kind": "ConfigMap", "apiVersion": "v1"}
    assert row("None") is None


def test_invalid_include_object_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="must be 'Metadata', 'Object', 'None', or empty"):
        parse_include_object("metadata")


def test_table_has_the_requested_version() -> None:
    output = Output("table", "v1beta1")
    table = to_table(config_maps(), [config_map("a")], now=NOW, output=output)
    assert table["apiVersion"] == table["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_metadata_only() -> None:
    assert partial_object(config_map("a", k="v")) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": config_map("a")["metadata"],
    }
    listed = partial_list([config_map("a"), config_map("b")], metadata={"resourceVersion": "9"})
    assert (listed["kind"], listed["metadata"]) == ("PartialObjectMetadataList", {"resourceVersion": "9"})
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b"]
    assert {item["kind"] for item in listed["items"]} == {"PartialObjectMetadata"}


def test_custom_resource_has_an_age_column_by_default() -> None:
    table = to_table(served_foo(), [foo()], now=NOW)
    assert [(column["name"], column["type"]) for column in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    assert table["rows"][0]["cells"] == ["f", "40s"]


def _cell(kind: str, path: str, **fields: Any) -> Any:
    served = served_foo(additionalPrinterColumns=[{"name": "C", "type": kind, "jsonPath": path}])
    table = to_table(served, [foo(**fields)], now=NOW)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "C"]
    (row,) = table["rows"]
    assert row["cells"][0] == "f"
    return row["cells"][1]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", "x", "x"),
        ("string", 5, "5"),
        ("string", {"a": [1]}, '{"a":[1]}'),
        ("string", True, "true"),
        ("string", None, "<no value>"),
        ("integer", 5, 5),
        ("integer", 5.9, 5),
        ("integer", "5", None),
        ("integer", True, None),
        ("number", 5.5, 5.5),
        ("number", "x", None),
        ("boolean", False, False),
        ("boolean", "true", None),
        ("date", "1970-01-01T00:10:00Z", "6m40s"),
        ("date", "soon", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
    ],
)
def test_cell_has_the_type_of_its_column(kind: str, value: Any, cell: Any) -> None:
    found = _cell(kind, ".spec.value", spec={"value": value})
    assert found == cell
    assert type(found) is type(cell)


def test_missing_value_is_null() -> None:
    assert _cell("string", ".spec.value") is None
    assert _cell("date", ".spec.value", spec={}) is None


def test_column_path_can_filter_conditions() -> None:
    path = '.status.conditions[?(@.type=="Ready")].status'
    conditions = [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]
    assert _cell("string", path, status={"conditions": conditions}) == "True"


def test_columns_keep_their_priority_format_and_description() -> None:
    column = {"name": "C", "type": "integer", "jsonPath": ".a", "priority": 1, "format": "int32", "description": "d"}
    table = to_table(served_foo(additionalPrinterColumns=[column]), [], now=NOW, metadata={})
    assert table["columnDefinitions"][1] == {
        "name": "C",
        "type": "integer",
        "format": "int32",
        "description": "d",
        "priority": 1,
    }
