"""``dl.run`` on an embedded server, in this process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from prometheus_client import REGISTRY, Counter, Gauge

import deltaloop as dl
from deltaloop.apiserver.core.controllers.manifests import ManifestError
from deltaloop.testing import eventually
from tests.client.loopback import free_port

SELF_REVIEW = dl.ResourceType[dl.api.Resource](
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)


def embedded(**options: Any) -> dl.RunOptions:
    given: dict[str, Any] = {
        "embedded": True,
        "health_probe_bind_address": "0",
        "metrics_bind_address": "0",
        **options,
    }
    return dl.RunOptions(**given)


CRD = Path(__file__).parents[3] / "examples" / "sample_controller" / "crd.yaml"


@pytest.mark.real_time
async def test_program_has_exactly_permissions_of_generated_role(tmp_path: Path) -> None:
    answers: list[str] = []

    @dl.controller("v1/ConfigMap", name="maps", writes=["v1/Secret"], predicates=[dl.predicates.HasLabels("go")])
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        await ctx.client.create("v1/Secret", {"metadata": {"name": request.name}})
        review = {"metadata": {}, "spec": {"resourceAttributes": {"resource": "pods", "verb": "list"}}}
        answer = await ctx.client.create(SELF_REVIEW, review)
        answers.append(f"{answer['status']['allowed']}")
        about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        ctx.recorder.event(about, "Normal", "Made", "made")

    config = tmp_path / "config"
    options = embedded(rbac=True, leader_elect=True, leader_election_namespace="elsewhere", write_kubeconfig=config)
    task = asyncio.create_task(dl.run(reconcile, options=options))
    await eventually(config.exists, every=0.02)
    async with dl.connect(kubeconfig=config) as client:
        await client.create("v1/ConfigMap", {"metadata": {"name": "a", "labels": {"go": ""}}})
        await eventually(lambda: answers == ["False"], every=0.02)
        await client.get("v1/Secret", "a")
        await eventually(lambda: client.list("v1/Event", namespace="default"), every=0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.real_time
async def test_program_can_run_in_other_thread(tmp_path: Path) -> None:
    @dl.controller("v1/ConfigMap", name="maps")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None: ...

    async def program() -> None:
        config = tmp_path / "config"
        task = asyncio.create_task(dl.run(reconcile, options=embedded(write_kubeconfig=config)))
        await eventually(lambda: config.exists() or task.done(), every=0.02)
        await asyncio.wait({task}, timeout=0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not config.exists()

    await asyncio.to_thread(asyncio.run, program())


class Spec(msgspec.Struct):
    colour: str = "red"


@dl.custom_resource(group="example.com", version="v1")
class Paint(msgspec.Struct, kw_only=True):
    metadata: dl.ObjectMeta
    spec: Spec


@pytest.mark.real_time
@pytest.mark.parametrize("loaded", [False, True])
async def test_embedded_server_has_crds_of_declared_classes(tmp_path: Path, loaded: bool) -> None:
    config, file = tmp_path / "config", tmp_path / "crd.yaml"
    colours: list[str] = []

    @dl.controller(Paint)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        colours.append((await ctx.client.get(Paint, request.name, namespace=request.namespace)).spec.colour)

    crd = dl.generate_crd(Paint)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["colour"]["default"] = "blue"
    file.write_text(json.dumps(crd))
    options = embedded(load=(file,) if loaded else (), write_kubeconfig=config)
    task = asyncio.create_task(dl.run(reconcile, options=options))
    await eventually(config.exists, every=0.02)
    async with dl.connect(kubeconfig=config) as client:
        await eventually(lambda: client.create(Paint, {"metadata": {"name": "a"}, "spec": {}}), every=0.02)
        await eventually(lambda: colours == ["blue" if loaded else "red"], every=0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@dl.mutate(Paint)
def darken(paint: Paint) -> None:
    paint.spec.colour = f"dark {paint.spec.colour}"


def _with_webhook(path: Path) -> dl.RunOptions:
    config = path.with_suffix(".config")
    return embedded(
        load=(path,), write_kubeconfig=config, webhook_bind_address=f":{free_port()}", webhook_name="paints"
    )


@pytest.mark.real_time
async def test_loaded_objects_pass_the_webhooks_of_the_program(tmp_path: Path) -> None:
    file = tmp_path / "paint.json"
    paint = {"apiVersion": "example.com/v1", "kind": "Paint", "metadata": {"name": "a"}, "spec": {"colour": "red"}}
    file.write_text(json.dumps(paint))
    options = _with_webhook(file)
    task = asyncio.create_task(dl.run(darken, options=options))
    assert options.write_kubeconfig is not None
    config = Path(options.write_kubeconfig)
    await eventually(config.exists, every=0.02)
    async with dl.connect(kubeconfig=config) as client:
        found = await eventually(lambda: client.list(Paint, namespace="default"), every=0.02)
        assert [each.spec.colour for each in found] == ["dark red"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.real_time
async def test_loaded_object_with_unknown_field_ends_the_run(tmp_path: Path) -> None:
    file = tmp_path / "paint.json"
    paint = {"apiVersion": "example.com/v1", "kind": "Paint", "metadata": {"name": "a"}, "spec": {"color": "red"}}
    file.write_text(json.dumps(paint))
    with pytest.raises(ManifestError) as raised:
        await dl.run(darken, options=_with_webhook(file))
    assert (raised.value.source, raised.value.number) == (str(file), 1)
    assert "spec.color" in str(raised.value)


async def test_embedded_server_loads_manifests_writes_kubeconfig_and_ends_with_program(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = tmp_path / "config"
    names: list[str] = []
    caplog.set_level("INFO", "deltaloop.runtime")

    @dl.controller("samples.deltaloop.dev/v1alpha1/Foo")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        names.append(request.name)

    task = asyncio.create_task(dl.run(reconcile, options=embedded(load=(CRD,), write_kubeconfig=config)))
    await eventually(config.exists, every=0.02)
    assert config.stat().st_mode & 0o777 == 0o600
    async with dl.connect(kubeconfig=config) as client:
        foo = {"metadata": {"name": "a"}, "spec": {"deploymentName": "a"}}
        await eventually(lambda: client.create("samples.deltaloop.dev/v1alpha1/Foo", foo), every=0.02)
        await eventually(lambda: names == ["a"], every=0.02)
        # Garbage is collected, as beside a controller in a cluster.
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "00000000-0000-0000-0000-000000000001"}
        owned: dict[str, Any] = {"metadata": {"name": "owned", "ownerReferences": [owner]}}
        await client.create(dl.kinds.CONFIG_MAP, owned)
        await client.wait_for(dl.kinds.CONFIG_MAP, "owned", dl.wait.deleted(), timeout=10)
    (ready,) = [vars(record) for record in caplog.records if record.message == "embedded API server is ready"]
    assert ready["url"].startswith("https://127.0.0.1:")
    assert ready["kubeconfig"] == str(config)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not config.exists()


@pytest.mark.real_time
async def test_metrics_page_contains_counters_of_program_by_default(caplog: pytest.LogCaptureFixture) -> None:
    greetings = Counter("cli_test_greetings", "Namespaces that were greeted", ["name"])

    @dl.controller(dl.kinds.NAMESPACE)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        greetings.labels(name=request.name).inc()

    async def is_served() -> bool:
        urls = [str(vars(r)["url"]) for r in caplog.records if r.message == "health server is listening"]
        if not urls:
            return False
        async with aiohttp.ClientSession() as session, session.get(f"{urls[0]}/metrics") as answer:
            page = await answer.text()
        return (
            'cli_test_greetings_total{name="default"} 1.0' in page
            and 'controller_runtime_reconcile_total{controller="namespace",result="success"}' in page
        )

    caplog.set_level("INFO", "deltaloop")
    task = asyncio.create_task(dl.run(reconcile, options=embedded(metrics_bind_address="127.0.0.1:0")))
    try:
        await eventually(is_served, every=0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        REGISTRY.unregister(greetings)


async def test_metric_with_reserved_name_is_rejected_before_start(tmp_path: Path) -> None:
    @dl.controller(dl.kinds.NAMESPACE)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None: ...

    taken = Gauge("workqueue_depth", "Of the program")
    config = tmp_path / "config"
    try:
        with pytest.raises(dl.errors.InvalidArgumentError, match=r"Gauge 'workqueue_depth' .* deltaloop's WorkQueue"):
            await dl.run(reconcile, options=embedded(metrics_bind_address="127.0.0.1:0", write_kubeconfig=config))
    finally:
        REGISTRY.unregister(taken)
    assert not config.exists()
