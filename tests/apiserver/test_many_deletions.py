"""Where many objects go at once, others have their turn in between."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.core.controllers.custom_resources import InstanceDeletion
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.strategy import Moment
from deltaloop.apiserver.core.write_options import DeleteOptions
from deltaloop.apiserver.core.writes.create import create
from deltaloop.apiserver.core.writes.delete import delete
from deltaloop.apiserver.core.writes.server_state import ServerState
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.serving import Caller, config_map, serving, widget, widget_crd

X = "/api/v1/namespaces/x"
MANY = 450
CRD = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def fill(server: ApiServer, *, owner: dict[str, Any] | None) -> None:
    served = server._state.registry.find("", "v1", "configmaps")
    assert served is not None
    owners: dict[str, Any] = {"ownerReferences": [owner]} if owner else {}
    for number in range(MANY):
        obj = config_map(f"c{number}", **owners)
        create(server._state.own_write(served, "x", "", Moment(now=0.0, uid=f"u{number}")), obj)


async def of_a_namespace(call: Caller) -> None:
    await call.delete(X)


async def of_a_collection(call: Caller) -> None:
    await call.delete(f"{X}/configmaps")


async def of_an_owner(call: Caller) -> None:
    await call.delete(f"{X}/secrets/owner")


@pytest.mark.parametrize(
    ("delete", "at_once"),
    [(of_a_namespace, 200), (of_a_collection, 16), (of_an_owner, 200)],
    ids=["of a namespace", "of a collection", "of an owner"],
)
async def test_many_deletions_do_not_block_other_requests(
    delete: Callable[[Caller], Coroutine[Any, Any, None]], at_once: int
) -> None:
    async with serving(controllers=frozenset({"gc", "namespace"})) as s:
        await s.call.created("/api/v1/namespaces", {"metadata": {"name": "x"}})
        made = (await s.call.created(f"{X}/secrets", {"metadata": {"name": "owner"}})).json["metadata"]
        reference = {"apiVersion": "v1", "kind": "Secret", "name": "owner", "uid": made["uid"]}
        fill(s.server, owner=reference if delete is of_an_owner else None)
        deleting = asyncio.create_task(delete(s.call))
        counts = [MANY]
        while counts[-1]:
            await asyncio.sleep(0)
            counts.append(s.server._store.count("configmaps"))
        await deleting
        steps = [before - after for before, after in pairwise(counts)]
        assert max(steps) <= at_once
        await asyncio.sleep(1.0)
        gone = delete is of_a_namespace
        assert (await s.call.get(X)).status == (404 if gone else 200)


def calls_to_delete(count: int) -> int:
    """Count the calls that it takes to delete a definition with so many objects, one of which is held."""
    state = ServerState(RevisionStore(), built_in_registry())
    find = state.registry.find
    namespaces, crds = find("", "v1", "namespaces"), find(*CRD)
    assert namespaces is not None
    assert crds is not None
    create(state.own_write(namespaces, "", "", Moment(now=0.0, uid="n")), {"metadata": {"name": "default"}})
    create(state.own_write(crds, "", "", Moment(now=0.0, uid="c")), widget_crd())
    widgets = find("example.com", "v1", "widgets")
    assert widgets is not None
    for number in range(count):
        obj = widget(f"w{number}", finalizers=["example.com/hold"] if number == 1 else [])
        create(state.own_write(widgets, "default", "", Moment(now=0.0, uid=f"u{number}")), obj)
    made = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        delete(state.own_write(crds, "", "widgets.example.com", Moment(now=1.0)), DeleteOptions())
        step = InstanceDeletion()
        while step(state, moments=lambda: Moment(now=1.0)):
            pass
    finally:
        sys.setprofile(None)
    [held] = state.store.list("widgets.example.com").items
    assert held.name == "w1"
    assert held.deletion_timestamp is not None
    assert state.objects.get(crds.storage, "widgets.example.com") is not None
    return made


def test_crd_deletion_does_not_read_objects_without_finalizers() -> None:
    assert (calls_to_delete(400) - calls_to_delete(100)) / 300 < 60
