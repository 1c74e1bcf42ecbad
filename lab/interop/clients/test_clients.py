"""One smoke test for each client: create, read, list, watch, patch, a custom resource, delete, and an error.

They run with ``make -C lab test-clients``, which installs the clients into an environment of their own; without them,
and in ``make test``, they are skipped by name. Go's typed and dynamic clients and informers: ``lab/interop/go_client``.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.interop.clients.serving import running

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("DELTALOOP_CLIENTS"), reason="foreign clients run with `make -C lab test-clients`"
    ),
    # What foreign packages leave behind is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CONFIG_MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "labels": {"app": "x"}},
    "data": {"k": "v"},
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
WIDGET: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "default"},
    "spec": {},
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    with running(tmp_path) as file:
        yield file
    gc.collect()  # while this test's filters of warnings apply to the sockets that foreign packages leave open


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed: make -C lab test-clients")


def test_official_client(kubeconfig: Path) -> None:
    kubernetes = package("kubernetes")
    api_client = kubernetes.config.new_client_from_config(str(kubeconfig))
    try:
        core, apps = kubernetes.client.CoreV1Api(api_client), kubernetes.client.AppsV1Api(api_client)
        made = core.create_namespaced_config_map("default", CONFIG_MAP)
        assert (made.metadata.name, made.data) == ("a", {"k": "v"})
        assert [item.metadata.name for item in core.list_namespaced_config_map("default").items] == ["a"]
        watch = kubernetes.watch.Watch()
        core.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}})
        seen = watch.stream(core.list_namespaced_config_map, "default", label_selector="app=x", timeout_seconds=20)
        assert next(iter(seen))["object"].data == {"k": "w"}
        watch.stop()
        apps.create_namespaced_deployment("default", DEPLOYMENT)
        scale = apps.patch_namespaced_deployment_scale("d", "default", {"spec": {"replicas": 3}})
        assert scale.spec.replicas == 3
        kubernetes.client.ApiextensionsV1Api(api_client).create_custom_resource_definition(CRD)
        custom = kubernetes.client.CustomObjectsApi(api_client)
        place = ("example.com", "v1", "default", "widgets")
        assert custom.create_namespaced_custom_object(*place, WIDGET)["spec"] == {"size": 1}
        custom.patch_namespaced_custom_object_status(*place, "w", {"status": {"ready": True}})
        assert custom.get_namespaced_custom_object(*place, "w")["status"] == {"ready": True}
        dynamic = kubernetes.dynamic.DynamicClient(api_client)
        widgets = dynamic.resources.get(api_version="example.com/v1", kind="Widget")
        assert [item.metadata.name for item in widgets.get(namespace="default").items] == ["w"]
        review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
        allowed = kubernetes.client.AuthorizationV1Api(api_client).create_self_subject_access_review(review)
        assert allowed.status.allowed
        core.delete_namespaced_config_map("a", "default")
        with pytest.raises(kubernetes.client.ApiException) as error:
            core.read_namespaced_config_map("a", "default")
        assert error.value.status == 404
    finally:
        api_client.close()


async def _asynchronous(module: Any, api_client: Any) -> None:
    """What kubernetes.aio and kubernetes_asyncio have in common."""
    client = module.client
    core = client.CoreV1Api(api_client)
    made = await core.create_namespaced_config_map("default", CONFIG_MAP)
    assert made.data == {"k": "v"}
    await core.patch_namespaced_config_map("a", "default", {"data": {"k": "w"}})
    watch = module.watch.Watch()
    async for event in watch.stream(core.list_namespaced_config_map, "default", label_selector="app=x"):
        assert (event["type"], event["object"].data) == ("ADDED", {"k": "w"})
        break
    watch.stop()
    await client.AppsV1Api(api_client).create_namespaced_deployment("default", DEPLOYMENT)
    await client.ApiextensionsV1Api(api_client).create_custom_resource_definition(CRD)
    custom = client.CustomObjectsApi(api_client)
    made = await custom.create_namespaced_custom_object("example.com", "v1", "default", "widgets", WIDGET)
    assert made["spec"] == {"size": 1}
    await core.delete_namespaced_config_map("a", "default")
    with pytest.raises(client.ApiException) as error:
        await core.read_namespaced_config_map("a", "default")
    assert error.value.status == 404


@pytest.mark.parametrize("name", ["kubernetes.aio", "kubernetes_asyncio"])
def test_async_clients(kubeconfig: Path, name: str) -> None:
    module = package(name)
    for part in ("client", "config", "watch"):
        importlib.import_module(f"{name}.{part}")

    async def run() -> None:
        configuration = module.client.Configuration()
        await module.config.load_kube_config(str(kubeconfig), client_configuration=configuration)
        async with module.client.ApiClient(configuration) as api_client:
            await _asynchronous(module, api_client)

    asyncio.run(run())


def test_kr8s(kubeconfig: Path) -> None:
    kr8s = package("kr8s")
    objects = importlib.import_module("kr8s.objects")
    api = kr8s.api(kubeconfig=str(kubeconfig))
    assert int(api.version()["minor"]) > 20
    made = objects.ConfigMap(CONFIG_MAP | {"metadata": CONFIG_MAP["metadata"] | {"namespace": "default"}}, api=api)
    made.create()
    made.patch({"data": {"k": "w"}})
    assert objects.ConfigMap.get("a", namespace="default", api=api).raw["data"] == {"k": "w"}
    assert [item.name for item in api.get("configmaps", namespace="default", label_selector="app=x")] == ["a"]
    deployment = objects.Deployment(DEPLOYMENT | {"metadata": {"name": "d", "namespace": "default"}}, api=api)
    deployment.create()
    deployment.patch({"spec": {"replicas": 3}}, subresource="scale")
    deployment.refresh()
    assert deployment.replicas == 3
    objects.CustomResourceDefinition(CRD, api=api).create()
    widget = objects.new_class("Widget.example.com/v1", namespaced=True)(WIDGET, api=api)
    widget.create()
    assert widget.raw["spec"] == {"size": 1}
    made.delete()
    with pytest.raises(kr8s.NotFoundError):
        objects.ConfigMap.get("a", namespace="default", api=api, timeout=1)


def test_lightkube(kubeconfig: Path) -> None:
    lightkube = package("lightkube")
    core = importlib.import_module("lightkube.resources.core_v1")
    apps = importlib.import_module("lightkube.resources.apps_v1")
    generic = importlib.import_module("lightkube.generic_resource")
    extensions = importlib.import_module("lightkube.resources.apiextensions_v1")
    client = lightkube.Client(config=lightkube.KubeConfig.from_file(str(kubeconfig)), field_manager="lightkube")
    made = client.create(core.ConfigMap.from_dict(CONFIG_MAP))
    assert made.data == {"k": "v"}
    assert client.patch(core.ConfigMap, "a", {"data": {"k": "w"}}).data == {"k": "w"}
    assert [item.metadata.name for item in client.list(core.ConfigMap, labels={"app": "x"})] == ["a"]
    action, seen = next(iter(client.watch(core.ConfigMap, server_timeout=20)))
    assert (action, seen.data) == ("ADDED", {"k": "w"})
    client.create(apps.Deployment.from_dict(DEPLOYMENT))
    client.create(extensions.CustomResourceDefinition.from_dict(CRD))
    widget = generic.create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    assert client.create(widget(WIDGET)).spec == {"size": 1}
    client.delete(core.ConfigMap, "a")
    with pytest.raises(lightkube.ApiError) as error:
        client.get(core.ConfigMap, "a")
    assert error.value.status.code == 404


OPERATOR = """
import kopf

@kopf.on.create("example.com", "v1", "widgets")
def made(body, spec, **_):
    return {"size": spec["size"]}

@kopf.on.update("example.com", "v1", "widgets", field="spec.size")
def changed(new, patch, **_):
    patch.status["seen"] = new

@kopf.on.delete("example.com", "v1", "widgets")
def gone(**_):
    return None
"""


def test_kopf(kubeconfig: Path, tmp_path: Path) -> None:
    """A small operator: it stores its result, sees a change, and lets the object go (its finalizer)."""
    package("kopf")
    kubernetes = package("kubernetes")
    file = tmp_path / "operator.py"
    file.write_text(OPERATOR)
    api_client = kubernetes.config.new_client_from_config(str(kubeconfig))
    kubernetes.client.ApiextensionsV1Api(api_client).create_custom_resource_definition(CRD)
    custom = kubernetes.client.CustomObjectsApi(api_client)
    place = ("example.com", "v1", "default", "widgets")
    command = [sys.executable, "-m", "kopf", "run", "--namespace", "default", "--standalone", str(file)]
    log = (tmp_path / "log").open("wb")
    with (
        log,
        subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(kubeconfig)}, stdout=log, stderr=log) as run,
    ):
        try:
            custom.create_namespaced_custom_object(*place, WIDGET)
            until(lambda: _widget(custom, place).get("status", {}).get("made") == {"size": 1}, log.name)
            custom.patch_namespaced_custom_object(*place, "w", {"spec": {"size": 5}})
            until(lambda: _widget(custom, place).get("status", {}).get("seen") == 5, log.name)
            assert _widget(custom, place)["metadata"]["finalizers"]
            custom.delete_namespaced_custom_object(*place, "w")
            until(lambda: not custom.list_namespaced_custom_object(*place)["items"], log.name)
        finally:
            run.terminate()
            run.wait(timeout=30)
            api_client.close()


def _widget(custom: Any, place: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = custom.get_namespaced_custom_object(*place, "w")
    return found


def until(look: Any, log: str) -> None:
    """Wait until it holds."""
    end = time.monotonic() + 60
    while not look():
        assert time.monotonic() < end, Path(log).read_text()[-3000:]
        time.sleep(0.2)  # noqa: TID251 - a foreign program in another process is waited for
