"""Paths and queries."""

from __future__ import annotations

import pytest

from deltaloop.api.status import BadRequestError, InvalidError
from deltaloop.apiserver.core.wire.requests import (
    ListQuery,
    ResourcePath,
    check_list_query,
    check_watch_query,
    parse_list_query,
    parse_path,
    parse_revision,
)
from deltaloop.apiserver.core.write_options import check_dry_run, delete_query, parse_boolean


def path(text: str) -> ResourcePath | None:
    return parse_path(tuple(text.strip("/").split("/")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/api/v1", ResourcePath(group="", version="v1")),
        ("/apis/apps/v1", ResourcePath(group="apps", version="v1")),
        ("/api/v1/pods", ResourcePath(group="", version="v1", plural="pods")),
        ("/api/v1/namespaces", ResourcePath(group="", version="v1", plural="namespaces")),
        ("/api/v1/namespaces/x", ResourcePath(group="", version="v1", plural="namespaces", name="x")),
        (
            "/api/v1/namespaces/x/status",
            ResourcePath(group="", version="v1", plural="namespaces", name="x", subresource="status"),
        ),
        ("/api/v1/namespaces/x/pods", ResourcePath(group="", version="v1", plural="pods", namespace="x")),
        (
            "/apis/apps/v1/namespaces/x/deployments/d/scale",
            ResourcePath(
                group="apps", version="v1", plural="deployments", namespace="x", name="d", subresource="scale"
            ),
        ),
        (
            "/api/v1/watch/namespaces/x/pods",
            ResourcePath(group="", version="v1", plural="pods", namespace="x", watch=True),
        ),
        ("/version", None),
        ("/apis/apps", None),
        ("/api/v1/pods/a/b/c/d", None),
        ("/api/v1//pods", None),
    ],
)
def test_paths(text: str, expected: ResourcePath | None) -> None:
    assert path(text) == expected


def test_encoded_slash_does_not_split_the_path() -> None:
    found = parse_path(("api", "v1", "namespaces", "a/b", "pods"))
    assert found is not None
    assert found.namespace == "a/b"


def test_queries_are_parsed_like_in_go() -> None:
    query = parse_list_query(
        {"limit": "-1", "watch": "", "timeoutSeconds": "5", "allowWatchBookmarks": "FALSE", "x": "y"}
    )
    assert query == ListQuery(watch=True, timeout_seconds=5)
    assert [parse_boolean(text) for text in ("1", "true", "yes", "0", "False", None)] == [
        True,
        True,
        True,
        False,
        False,
        None,
    ]
    for wrong in ("abc", "1.5", "", "--1", "9" * 20, "9" * 40):
        if wrong:
            with pytest.raises(BadRequestError, match=r"strconv\.ParseInt"):
                parse_list_query({"limit": wrong})


def test_revisions() -> None:
    assert [parse_revision(text) for text in ("", "0", "7", str(2**64 - 1))] == [0, 0, 7, 2**64 - 1]
    assert [parse_revision(text) for text in ("-1", "x", "1.0", "²", str(2**64))] == [None] * 5


def test_valid_options_are_accepted() -> None:
    check_list_query(ListQuery(resource_version="5", resource_version_match="Exact"))
    check_list_query(ListQuery(continue_="x", resource_version="0"))
    check_watch_query(ListQuery(send_initial_events=True, resource_version_match="NotOlderThan"))
    with pytest.raises(InvalidError):
        check_watch_query(ListQuery(send_initial_events=False))


def test_dry_run() -> None:
    assert check_dry_run(("All",))
    assert not check_dry_run(())
    with pytest.raises(InvalidError, match="DeleteOptions"):
        check_dry_run(("All", "some"))


def test_delete_options_in_a_query() -> None:
    query = {"gracePeriodSeconds": "3", "orphanDependents": "false", "propagationPolicy": "Orphan"}
    assert delete_query(query) == {"gracePeriodSeconds": 3, "orphanDependents": False, "propagationPolicy": "Orphan"}
