"""The examples, in short forms: what they say happens, and they fail if it does not."""

from __future__ import annotations

import pytest
from examples.run import NAMES, Scene, run

# An API server alone runs no pods.
NOT_SHOWN = {"sample_controller": "its pod is scheduled and ready"}
OBJECTS = {"workqueue": 10, "sample_controller": 3, "provisioner": 10, "replicator": 40, "database": 1}


@pytest.mark.real_time
@pytest.mark.parametrize("name", NAMES)
async def test_each_example_completes_its_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    lines: list[str] = []
    assert await run(name, objects=OBJECTS[name], show=lines.append) == 0, lines
    last, _, not_shown = lines[-1].partition("; not shown: ")
    told = "everything happened that can happen here" if name in NOT_SHOWN else "everything happened"
    assert last.startswith(f"{name}: {told}, in ")
    assert not_shown == NOT_SHOWN.get(name, "")
    assert sum(line.startswith("  ok ") for line in lines) >= 4


@pytest.mark.real_time
async def test_missing_step_is_reported_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    lines: list[str] = []

    async def show(scene: Scene) -> None:
        scene.expect(True, "the one")
        scene.expect(False, "the other")

    monkeypatch.setattr("examples.show_workqueue.show", show)
    assert await run("workqueue", show=lines.append) == 1
    assert lines[1:] == ["  ok   the one", "  FAIL the other", "workqueue: did not happen: the other"]
