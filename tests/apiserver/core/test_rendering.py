"""The wire forms that need no server to be checked, and routes."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.resource import Resource
from deltaloop.api.status import ApiError, BadRequestError, MethodNotAllowedError, NotAcceptableError, NotFoundError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.encoding import (
    list_metadata,
    object_list,
    watch_line,
    whole_object,
    with_resource_version,
)
from deltaloop.apiserver.core.failures import FieldError, required
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.rendering import choose_rendering
from deltaloop.apiserver.core.requests import ResourcePath
from deltaloop.apiserver.core.routing import find_route
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.store import Store


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
