"""Built-in kinds as Go reads them: types, and what is empty."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.status import BadRequestError
from deltaloop.apiserver.core.kinds import access
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.reading import read_object
from tests.apiserver.core.built_in import built_in_registry


def served(group: str, plural: str) -> ServedResource:
    found = built_in_registry().find(group, "v1", plural)
    assert found is not None
    return found


CONFIG_MAP, SECRET, DEPLOYMENT = served("", "configmaps"), served("", "secrets"), served("apps", "deployments")


def decoded(resource: ServedResource, **fields: Any) -> dict[str, Any]:
    assert read_object(resource.schema.tree, fields) is None
    return fields


def test_empty_values_are_omitted_and_structs_are_kept() -> None:
    assert decoded(CONFIG_MAP, data={}, binaryData=None, immutable=False) == {"immutable": False}
    pod: dict[str, Any] = {
        "containers": [{"name": "c", "args": [], "resources": {}, "env": None}],
        "securityContext": {},
    }
    found = decoded(DEPLOYMENT, spec={"replicas": None, "template": {"spec": pod}})
    kept: dict[str, Any] = {"containers": [{"name": "c", "resources": {}}], "securityContext": {}}
    assert found == {"spec": {"template": {"spec": kept}}}


@pytest.mark.parametrize(
    ("resource", "fields", "message"),
    [
        (CONFIG_MAP, {"data": {"k": 1}}, "number into Go struct field ConfigMap.data of type string"),
        (CONFIG_MAP, {"data": []}, "array into Go struct field ConfigMap.data of type map[string]string"),
        (
            DEPLOYMENT,
            {"spec": {"replicas": "1"}},
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (DEPLOYMENT, {"spec": {"paused": 1}}, "number into Go struct field DeploymentSpec.spec.paused of type bool"),
        (
            DEPLOYMENT,
            {"spec": {"replicas": True}},
            "bool into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
    ],
)
def test_wrong_type_gives_400_with_the_go_message(
    resource: ServedResource, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadRequestError) as raised:
        resource.codec.read(fields, "whole")
    assert raised.value.status.message.endswith(f"json: cannot unmarshal {message}")


def test_string_data_of_a_secret_overwrites_data() -> None:
    fields: dict[str, Any] = {"data": {"a": "MQ==", "b": "MQ=="}, "stringData": {"b": "é"}}
    access.SECRET.default(fields)
    assert fields == {"data": {"a": "MQ==", "b": "w6k="}, "type": "Opaque"}


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({"data": {"a": "1"}}, {"data": {"a": "2"}}, []),
        ({"immutable": True, "data": {"a": "1"}}, {"immutable": True, "data": {"a": "1"}}, []),
        ({"immutable": True, "data": {"a": "1"}}, {"immutable": True, "data": {"a": "2"}}, ["data"]),
        ({"immutable": True}, {}, ["immutable"]),
        ({"immutable": True}, {"immutable": True, "binaryData": {"a": "MQ=="}}, ["binaryData"]),
    ],
)
def test_immutable_fields_cannot_change(before: dict[str, Any], after: dict[str, Any], fields: list[str]) -> None:
    assert [error.field for error in access.CONFIG_MAP.validate_update(before, after)] == fields
