"""Short runs of the examples."""

from __future__ import annotations

import pytest
from examples.run import NAMES, Scene, run

# An API server alone runs no pods.
SKIPPED = {"sample_controller": "the pod is ready"}
OBJECTS = {"workqueue": 10, "sample_controller": 3, "provisioner": 10, "replicator": 40, "database": 1}


@pytest.mark.real_time
@pytest.mark.parametrize("name", NAMES)
async def test_each_example_completes_its_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    lines: list[str] = []
    assert await run(name, objects=OBJECTS[name], show=lines.append) == 0, lines
    last, _, skipped = lines[-1].partition(", skipped steps: ")
    assert last.startswith(f"{name}: completed in ")
    assert skipped == SKIPPED.get(name, "")
    assert sum(line.startswith("  ok ") for line in lines) >= 4


@pytest.mark.real_time
async def test_missing_step_is_reported_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    lines: list[str] = []

    async def show(scene: Scene) -> None:
        scene.expect(True, "first step")
        scene.expect(False, "second step")

    monkeypatch.setattr("examples.show_workqueue.show", show)
    assert await run("workqueue", show=lines.append) == 1
    assert lines[1:] == ["  ok   first step", "  FAIL second step", "workqueue: failed steps: second step"]
