"""What type checkers make of the blocking verbs; nothing here runs: mypy and pyright fail where a type is another."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from typing import Any, assert_type

import deltaloop as dl
from deltaloop.blocking import Client


class Foo:
    """A class of one's own."""


def types_of_blocking_verbs(client: Client, foo: dl.ResourceType[Foo], obj: dict[str, Any]) -> None:
    assert_type(client.get(foo, "a", namespace="n"), Foo)
    assert_type(client.get("v1/Pod", "a", subresource="status"), dl.Resource)
    assert_type(client.list(foo), dl.ResourceList[Foo])
    assert_type(client.list(foo, metadata_only=True), dl.ResourceList[dl.Resource])
    assert_type(client.list("v1/Pod", namespace="n"), dl.ResourceList[dl.Resource])
    assert_type(client.list_all(foo, page_size=3), dl.ResourceList[Foo])
    assert_type(client.iter_list(foo), Generator[Foo, None, None])
    assert_type(client.iter_list("v1/Pod"), Generator[dl.Resource, None, None])
    assert_type(client.watch(foo), AbstractContextManager[Iterator[dl.api.WatchEvent]])
    assert_type(client.logs("a"), AbstractContextManager[Iterator[bytes]])
    assert_type(client.create(foo, obj), Foo)
    assert_type(client.patch(foo, "a", {}, type=dl.PatchType.MERGE), Foo)
    assert_type(client.delete("v1/Pod", "a"), dl.Resource | None)
    assert_type(client.delete(foo, "a"), Foo | None)
    assert_type(client.scale(foo, "a", 3), dl.Resource)
    assert_type(client.resource("deploy"), dl.ResourceType[dl.Resource])
    client.get(foo)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]  # the name is missing
    client.get(foo, "a", namspace="n")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]  # misspelt
    client.create(foo, obj, options=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]  # no options
