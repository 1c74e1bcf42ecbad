"""Deletion of the objects of terminating CRDs over HTTP."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from deltaloop.apiserver import Manifest
from tests.apiserver.serving import CRDS, WIDGETS, serving, widget, widget_crd

CRD = f"{CRDS}/widgets.example.com"
HELD = {"finalizers": ["example.com/hold"]}


@pytest.mark.parametrize(
    ("count", "metadata", "most"), [(600, {}, 256), (130, HELD, 17)], ids=["without-finalizers", "held"]
)
async def test_deletions_per_event_loop_iteration_are_bounded(count: int, metadata: dict[str, Any], most: int) -> None:
    async with serving() as on:
        on.server.load([Manifest("crd", 0, widget_crd())])
        made = (widget(f"w{number:03}", **metadata, namespace="default") for number in range(count))
        on.server.load(Manifest("widgets", number, each) for number, each in enumerate(made))
        deletion = asyncio.create_task(on.call.delete(CRD))
        revisions = [on.server.revision]
        while on.server.revision < revisions[0] + count + 2:
            await asyncio.sleep(0)
            revisions.append(on.server.revision)
        assert (await deletion).status == 200
        after_request = [after - before for before, after in pairwise(revisions)]
        assert max(after_request) <= most
        if metadata:
            assert (await on.call.get(CRD)).json["status"]["conditions"][-1]["reason"] == "InstanceDeletionInProgress"
            (await on.call.post(WIDGETS, widget("new"))).refuses(403, "Forbidden")
            revision = on.server.revision
            await asyncio.sleep(10)
            assert on.server.revision == revision  # it waits and does not write meanwhile
            names = (await on.call.get(WIDGETS)).names
            for name in names:
                await on.call.patch(f"{WIDGETS}/{name}", {"metadata": {"finalizers": None}})
        assert (await on.call.get(CRD)).status == 404
        await on.call.created(CRDS, widget_crd())
        assert (await on.call.get(WIDGETS)).names == []
