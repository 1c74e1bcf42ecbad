"""Programs and promises of each earlier version, with the present package."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.testing import Harness, eventually
from lab.upgrade.promises import HERE, promises, read

VERSIONS = sorted(path for path in HERE.glob("v*") if path.is_dir())
REMOVED: dict[str, str] = {}
"""Promises that were removed after their deprecation, with the version that removed them."""


@pytest.fixture(params=VERSIONS, ids=lambda path: path.name)
def frozen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder: Path = request.param
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    yield folder
    for name in [path.stem for path in folder.glob("*.py")]:
        sys.modules.pop(name, None)


def test_promises_of_earlier_versions_are_kept(frozen: Path) -> None:
    now = promises()
    broken = [
        f"{name} {part}".strip()
        for name, parts in read(frozen / "promises.txt").items()
        for part in ([""] if name not in now else sorted(parts - now[name]))
    ]
    assert [each for each in broken if each not in REMOVED] == []


async def test_first_program_and_its_test_run(frozen: Path, deltaloop_harness: Harness) -> None:
    module = importlib.import_module("test_greeter")
    await module.test_greeting_survives_crash(deltaloop_harness)


async def test_controller_with_children_and_status_runs(frozen: Path, deltaloop_harness: Harness) -> None:
    module = importlib.import_module("website")
    client: Any = deltaloop_harness.client
    await deltaloop_harness.install(module.Website)
    await deltaloop_harness.start(module.reconcile)
    made = module.Website(metadata=dl.ObjectMeta(name="home"), spec=module.WebsiteSpec(html="<p>", replicas=2))
    await client.create(module.Website, made)
    await deltaloop_harness.settled()
    assert (await client.get(dl.kinds.DEPLOYMENT, "home"))["spec"]["replicas"] == 2
    assert (await client.get(dl.kinds.CONFIG_MAP, "home"))["data"] == {"index.html": "<p>"}
    assert (await client.get(module.Website, "home")).status.ready_replicas == 0


async def test_program_with_informer_and_queue_runs(frozen: Path, deltaloop_harness: Harness) -> None:
    module = importlib.import_module("workqueue")
    told: list[str] = []
    client: Any = deltaloop_harness.client
    controller = module.Controller(client, client.namespace, told.append)
    task = asyncio.create_task(controller.run(2))
    try:
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
        await client.create(dl.kinds.POD, pod)
        await eventually(lambda: "Sync/Add/Update for Pod a" in told)
    finally:
        task.cancel()
        await asyncio.wait([task])
