"""The replicator in virtual time; ``tests/simulation/test_ordinary.py`` has it under faults."""

from __future__ import annotations

from examples.replicator.controller import TO, replicator

import deltaloop as dl
from deltaloop.testing import Harness

CONFIG_MAP, NAMESPACE = dl.kinds.CONFIG_MAP, dl.kinds.NAMESPACE


async def test_copies_are_deleted_if_source_is_unmarked(deltaloop_harness: Harness) -> None:
    client = deltaloop_harness.client
    await client.create(NAMESPACE, {"metadata": {"name": "a", "labels": {"copies": "yes"}}})
    await client.create(CONFIG_MAP, {"metadata": {"name": "source", "annotations": {TO: "copies=yes"}}})
    await deltaloop_harness.start(replicator([f"{client.namespace}/source"]))
    await deltaloop_harness.settled()
    assert await client.find(CONFIG_MAP, "source", namespace="a") is not None
    await client.patch(CONFIG_MAP, "source", {"metadata": {"annotations": {TO: None}}})
    await deltaloop_harness.settled()
    assert await client.find(CONFIG_MAP, "source", namespace="a") is None
    await client.delete(CONFIG_MAP, "source")
    await deltaloop_harness.settled()
    assert await client.find(CONFIG_MAP, "source") is None
