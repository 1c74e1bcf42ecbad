"""What a write says before it is done: how it is read, and how a DELETE is answered."""

from __future__ import annotations

import pytest

from deltaloop.api.status import Status, StatusDetails
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.routing import Route
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes import write_requests as asked
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import served_foo

FOO = served_foo()


def served(group: str, plural: str) -> ServedResource:
    found = built_in_registry().find(group, "v1", plural)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("content_type", "body", "swells"),
    [
        ("application/json", b'{"a": "&b *b"}', False),
        ("application/yaml", b"a: &b [1]", True),
        ("application/yaml; charset=utf-8", b"a: 1", False),
        ("application/apply-patch+yaml", b"a: &b [1]", True),
        ("application/json-patch+json", b'[{"op": "copy"}]', True),
        ("application/json-patch+json", b'[{"op": "\\u0063opy"}]', True),
        ("Application/JSON-Patch+JSON; a=b", b'[{"op": "copy"}]', True),
        ("application/json-patch+json", b'[{"op": "add"}]', False),
        ("application/merge-patch+json", b'{"a": "copy"}', False),
    ],
)
def test_a_body_may_stand_for_more_than_its_length(content_type: str, body: bytes, swells: bool) -> None:
    assert asked.may_swell(content_type, body) is swells


def test_a_patch_may_be_an_apply() -> None:
    assert asked.applies("application/apply-patch+yaml")
    assert asked.applies("Application/Apply-Patch+YAML; charset=utf-8")
    assert not asked.applies("application/merge-patch+json")


@pytest.mark.parametrize(("code", "whole"), [(409, True), (500, True), (400, False), (422, False), (403, False)])
def test_what_storage_refuses_was_looked_at_whole(code: int, whole: bool) -> None:
    assert asked.is_looked_at_whole(Status(code=code)) is whole


def test_what_a_body_in_protobuf_is() -> None:
    deployments = Route(served("apps", "deployments"), "update", "default", "a")
    assert asked.protobuf_kind(deployments) == ("apps/v1", "Deployment")
    scale = Route(deployments.served, "update", "default", "a", "scale")
    assert asked.protobuf_kind(scale) == ("autoscaling/v1", "Scale")
    assert asked.protobuf_kind(Route(FOO, "update", "default", "a")) is None


def test_a_put_creates_leases_and_not_their_parts() -> None:
    leases = served("coordination.k8s.io", "leases")
    assert asked.may_create_by_update(Route(leases, "update", "default", "a"))
    assert not asked.may_create_by_update(Route(leases, "update", "default", "a", "status"))
    assert not asked.may_create_by_update(Route(FOO, "update", "default", "a"))


def test_names_of_finalizers_are_advised_on_where_they_are_written() -> None:
    fields: dict[str, object] = {"metadata": {"finalizers": ["plain"]}}
    assert len(asked.advice_on_finalizers(Route(FOO, "update", "default", "a"), fields, None)) == 1
    assert asked.advice_on_finalizers(Route(FOO, "update", "default", "a", "status"), fields, None) == ()
    assert asked.advice_on_finalizers(Route(FOO, "update", "default", "a"), {"metadata": {}}, None) == ()


@pytest.mark.parametrize(
    ("orphan", "removed", "code"), [(False, False, 202), (False, True, 200), (True, False, 200), (None, False, 200)]
)
def test_what_goes_after_its_dependents_is_accepted(orphan: bool | None, removed: bool, code: int) -> None:
    assert asked.deletion_code(DeleteOptions(orphan_dependents=orphan), removed=removed) == code


def test_a_delete_is_answered_with_a_status_or_with_the_object() -> None:
    details = StatusDetails(name="a", group="", kind="configmaps", uid="u")
    done = asked.deletion_answer(served("", "configmaps"), "a", "u", removed=True)
    assert done == Status(status="Success", details=details)
    assert asked.deletion_answer(served("", "configmaps"), "a", "u", removed=False) is None
    assert asked.deletion_answer(served("", "pods"), "a", "u", removed=True) is None
