"""``deltaloop run`` on an embedded server, in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import deltaloop as dl
from deltaloop.cli.run import ClusterFlags, RunCommand, run
from deltaloop.testing import eventually

CRD = Path(__file__).parents[2] / "examples" / "sample_controller" / "crd.yaml"


@pytest.mark.real_time
async def test_an_embedded_server_has_the_manifests_and_a_kubeconfig_for_others_and_goes_with_the_program(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config"
    names: list[str] = []
    lines: list[str] = []

    @dl.controller("samples.deltaloop.dev/v1alpha1/Foo")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        names.append(request.name)

    cluster = ClusterFlags(embedded=True, load=(CRD,), write_kubeconfig=config)
    task = asyncio.create_task(run(RunCommand(controllers=(reconcile,), cluster=cluster), lines.append))
    await eventually(lambda: lines, every=0.02)
    assert lines[0].startswith("embedded API server is ready at https://127.0.0.1:")
    assert lines[0].endswith(f"; use it with: export KUBECONFIG={config}")
    assert config.stat().st_mode & 0o777 == 0o600
    async with dl.connect(kubeconfig=config) as client:
        foo = {"metadata": {"name": "a"}, "spec": {"deploymentName": "a"}}
        await eventually(lambda: client.create("samples.deltaloop.dev/v1alpha1/Foo", foo), every=0.02)
        await eventually(lambda: names == ["a"], every=0.02)
        # Garbage is collected, as beside a controller in a cluster.
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000001"}
        owned = {"metadata": {"name": "owned", "ownerReferences": [owner]}}
        await client.create(dl.kinds.CONFIG_MAP, owned)
        await client.wait_for(dl.kinds.CONFIG_MAP, "owned", dl.wait.deleted(), timeout=10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not config.exists()
