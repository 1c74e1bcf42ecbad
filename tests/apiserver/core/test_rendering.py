"""The wire forms that need no server to be checked, and routes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, BadRequestError, MethodNotAllowedError, NotAcceptableError, NotFoundError
from deltaloop.api.watch_event import EventType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.encoding import (
    list_metadata,
    object_list,
    watch_line,
    whole_object,
    with_resource_version,
)
from deltaloop.apiserver.core.failures import FieldError, required
from deltaloop.apiserver.core.listing import Listed
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.rendering import Rendering, WatchRendering, choose_rendering
from deltaloop.apiserver.core.requests import ResourcePath
from deltaloop.apiserver.core.routing import find_route
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.store import Store
from deltaloop.apiserver.core.table import Shape
from deltaloop.apiserver.core.watching import Sighting


def config_maps() -> ServedResource:
    found = Registry().find("", "v1", "configmaps")
    assert found is not None
    return found


def stored() -> Resource:
    return Store().create("configmaps", "a", {"metadata": {"name": "a"}, "kind": "X"})


def test_kind_and_version_are_put_in_front() -> None:
    served = config_maps()
    raw = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2"}}'
    assert whole_object(served, stored()) == raw
    assert watch_line("ADDED", raw) == b'{"type":"ADDED","object":' + raw + b"}\n"
    assert object_list(served, [stored()], list_metadata(7)) == (
        b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"7"},'
        b'"items":[{"metadata":{"name":"a","resourceVersion":"2"}}]}'
    )
    assert with_resource_version(stored(), 9).resource_version == "9"
    assert stored().resource_version == "2"


def test_list_metadata() -> None:
    assert list_metadata(1, continue_="t", remaining=2) == {
        "continue": "t",
        "remainingItemCount": 2,
        "resourceVersion": "1",
    }
    assert list_metadata(1, remaining=0, always_continue=True) == {"continue": "", "resourceVersion": "1"}


def test_forms_that_cannot_be_given() -> None:
    with pytest.raises(NotAcceptableError):
        choose_rendering(config_maps(), accept="text/html", include_object="", shape="object", now=0)
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    with pytest.raises(BadRequestError):
        choose_rendering(config_maps(), accept=table, include_object="Some", shape="list", now=0)
    assert (
        choose_rendering(config_maps(), accept="", include_object="Some", shape="list", now=0).output.form == "object"
    )


def test_messages_of_one_and_of_several_fields() -> None:
    kind = config_maps().type
    one = failures.invalid(kind, "a", [required("spec.x")])
    assert one.status.message == 'ConfigMap "a" is invalid: spec.x: Required value'
    two = failures.invalid(kind, "a", [required("spec.x", "say it"), FieldError("y", "FieldValueInvalid", "no")])
    assert two.status.message == 'ConfigMap "a" is invalid: [spec.x: Required value: say it, y: no]'
    assert two.status.details is not None
    assert [cause.field for cause in two.status.details.causes] == ["spec.x", "y"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (failures.internal("x"), 500),
        (failures.unexplained("x"), 500),
        (failures.misdirected("evil"), 421),
        (failures.body_too_large(), 413),
        (failures.expired_watch(1, 2), 410),
    ],
)
def test_codes(error: ApiError, code: int) -> None:
    assert error.status.code == code


def test_routes() -> None:
    registry = Registry()

    def verb(method: str, *, watch: bool = False, **path: Any) -> str | None:
        route = find_route(registry, ResourcePath(group="", version="v1", **path), method, watch=watch)
        return route.verb if route is not None else None

    assert verb("GET", plural="pods") == "list"
    assert verb("GET", plural="pods", watch=True) == "watch"
    assert verb("GET", plural="pods", namespace="x", name="p", watch=True) == "get"
    assert verb("DELETE", plural="pods", namespace="x") == "deletecollection"
    assert verb("PATCH", plural="pods", namespace="x", name="p", subresource="status") == "patch"
    assert verb("PUT", plural="namespaces", name="x", subresource="finalize") == "update"
    assert find_route(registry, ResourcePath(group="none", version="v1", plural="pods"), "GET", watch=False) is None
    assert verb("GET", plural="pods", namespace="x", name="p") == "get"
    old = ResourcePath(group="", version="v1", plural="pods", namespace="x", name="p", watch=True)
    assert getattr(find_route(registry, old, "GET", watch=True), "verb", "") == "watch"
    unknown: tuple[dict[str, Any], ...] = (
        {"plural": "nones"},
        {"plural": "pods", "name": "p"},
        {"plural": "nodes", "namespace": "x"},
        {"plural": "pods", "namespace": "x", "name": "p", "subresource": "finalize"},
    )
    for path in unknown:
        with pytest.raises(NotFoundError):
            verb("GET", **path)
    refused: tuple[tuple[str, dict[str, Any]], ...] = (
        ("DELETE", {"plural": "namespaces"}),
        ("POST", {"plural": "pods"}),
        ("HEAD", {"plural": "pods"}),
        ("PATCH", {"plural": "pods", "namespace": "x"}),
        ("DELETE", {"plural": "pods", "namespace": "x", "name": "p", "subresource": "status"}),
        ("GET", {"plural": "namespaces", "name": "x", "subresource": "finalize"}),
    )
    for method, path in refused:
        with pytest.raises(MethodNotAllowedError):
            verb(method, **path)


DROP = "drop=metadata.managedFields"
AS_PARTIAL = "as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
OWNED: dict[str, Any] = {"name": "a", "managedFields": [{"manager": "m", "operation": "Update"}]}


def owned() -> Resource:
    return Store().create("configmaps", "a", {"metadata": OWNED, "data": {"k": "v"}})


def rendering_of(accept: str, shape: Shape) -> Rendering:
    return choose_rendering(config_maps(), accept=accept, include_object="", shape=shape, now=0)


@pytest.mark.parametrize(
    ("accept", "dropped"),
    [
        (f"application/json;{DROP}", True),
        ("application/json", False),
        ("application/json;drop=", False),
        ("application/json;drop=metadata", False),
        ("application/json;drop=spec+metadata.managedFields", True),
        (f"application/json;{AS_PARTIAL};{DROP}", True),
        (f"application/json;{AS_PARTIAL}", False),
        (f"application/yaml;{DROP}", False),
        (f"text/html;{DROP}, application/json", False),
    ],
)
def test_managed_fields_are_left_out_where_it_is_asked_for(accept: str, dropped: bool) -> None:
    obj = msgspec.json.decode(rendering_of(accept, "object").object(owned()))
    assert ("managedFields" in obj["metadata"]) is not dropped
    assert obj["metadata"]["name"] == "a"
    assert obj["metadata"]["resourceVersion"] == "2"


@pytest.mark.parametrize("form", ["", ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"])
def test_managed_fields_are_left_out_of_lists(form: str) -> None:
    listed = Listed((owned(), stored()), list_metadata(7))
    for accept, found in ((f"application/json{form}", [True, False]), (f"application/json{form};{DROP}", [False] * 2)):
        items = msgspec.json.decode(rendering_of(accept, "list").list(listed))["items"]
        assert ["managedFields" in item["metadata"] for item in items] == found


@pytest.mark.parametrize("form", ["", f";{AS_PARTIAL}"])
def test_managed_fields_are_left_out_of_watches(form: str) -> None:
    rendering = WatchRendering(rendering_of(f"application/json{form};{DROP}", "watch"))
    event = msgspec.json.decode(rendering.line(Sighting(EventType.ADDED, object=owned()), now=0))
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert "managedFields" not in event["object"]["metadata"]


def test_a_table_stays_as_it_is() -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    listed = Listed((owned(),), list_metadata(7))
    assert rendering_of(f"{accept};{DROP}", "list").list(listed) == rendering_of(accept, "list").list(listed)
    assert rendering_of(f"{accept};{DROP}", "object").object(owned()).count(b"managedFields") == 1
