"""The HorizontalPodAutoscaler of docs/how-to/scale.md with the real controller: ``python -m lab.shards.autoscaling``.

A real kube-apiserver and kube-controller-manager run the recipe of the page, ten times faster: all times are divided by
ten. Each Pod of its Deployment is a process of a sharded program. A small server of the custom metrics API reads their
``/metrics``. Many objects change at once, and then changes arrive faster than two members can reconcile them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

import deltaloop as dl
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.apiserver.tls import CertificateAuthority
from deltaloop.kinds import CONFIG_MAP, DEPLOYMENT, EVENT, HORIZONTAL_POD_AUTOSCALER, NAMESPACE, POD, SERVICE
from deltaloop.testing.servers.control_plane import ControlPlaneAssets, ControlPlaneError
from lab.kube.build import assets, build, go_command
from lab.shards.checking import entries, reconciled_twice
from lab.world.build import CONTROLLER_MANAGER
from lab.world.programs import Place, free_port, running, serving

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "how-to" / "scale.md"
LOGS: Final = ROOT / "build" / "autoscaling"
FASTER: Final = 10
SYNC_PERIOD: Final = 15
GROUP: Final = "custom.metrics.k8s.io/v1beta2"
NAMESPACES: Final = [f"team-{place:03}" for place in range(100)]
OBJECTS: Final = 8
"""Number of objects of each namespace."""
BURST: Final = 400
"""Number of objects that change at once."""
RATE: Final = 30.0
"""Changes per second. A member reconciles ten per second."""
LOAD_SECONDS: Final = 120.0
SETTLED_SECONDS: Final = 40.0
"""Time before the end of the load in which no key may wait for long."""
SCALE_IN_SECONDS: Final = 180.0
STOP_SECONDS: Final = 60.0


def recipe() -> dict[str, Any]:
    """Return the HorizontalPodAutoscaler of the page, with all times divided."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if "kind: HorizontalPodAutoscaler" in text]
    autoscaler: dict[str, Any] = read_yaml(found)
    target = age_of(autoscaler)["target"]
    target["averageValue"] = str(int(target["averageValue"]) // FASTER)
    for rules in autoscaler["spec"]["behavior"].values():
        if "stabilizationWindowSeconds" in rules:
            rules["stabilizationWindowSeconds"] //= FASTER
        for policy in rules["policies"]:
            policy["periodSeconds"] //= FASTER
    return autoscaler


def age_of(autoscaler: dict[str, Any]) -> dict[str, Any]:
    """Return the metric that is a time."""
    metrics: list[dict[str, Any]] = [each["pods"] for each in autoscaler["spec"]["metrics"]]
    (found,) = [each for each in metrics if each["metric"]["name"].endswith("_seconds")]
    return found


def deployment(name: str) -> dict[str, Any]:
    """Return a Deployment with Pods that need no scheduler."""
    containers = [{"name": "main", "image": "example.com/deployments:1"}]
    pod = {"nodeName": "lab", "terminationGracePeriodSeconds": 40, "containers": containers}
    labels = {"app": name}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


@dataclass
class Member:
    """One Pod and its process."""

    process: asyncio.subprocess.Process
    port: int
    ready: bool = False
    ended: bool = False


@dataclass
class Kubelet:
    """Processes of all Pods, started and ended as the Pods are created and deleted."""

    client: dl.Client
    place: Place
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    journals: list[Path] = field(default_factory=list[Path])

    async def until(self, holds: Callable[[], bool], *, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.2)

    async def run(self) -> None:
        while True:
            for pod in await self.client.list_all(POD, namespace="default"):
                await self._sync(pod)
            await asyncio.sleep(0.2)

    async def _sync(self, pod: dl.Resource) -> None:
        member = self.members.get(pod.name)
        if pod["metadata"].get("deletionTimestamp"):
            if member is not None and member.process.returncode is None:
                if not member.ended:
                    member.process.send_signal(signal.SIGTERM)
                    member.ended = True
                return
            self.members.pop(pod.name, None)
            options = dl.DeleteOptions(grace_period_seconds=0, uid=pod.uid)
            await self.client.delete(POD, pod.name, namespace="default", options=options)
        elif member is None:
            self.members[pod.name] = await self._start(pod.name)
        elif member.process.returncode is not None:
            raise RuntimeError(f"{pod.name} ended by itself, see {self.place.logs / pod.name}.log")
        elif not member.ready and await self.age(pod.name, "deltaloop_shard_ranges") is not None:
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self.client.patch(POD, pod.name, {"status": status}, namespace="default", subresource="status")
            member.ready = True

    async def _start(self, name: str) -> Member:
        port, journal = free_port(), self.place.scratch / f"{name}.jsonl"
        self.journals.append(journal)
        with (self.place.logs / f"{name}.log").open("w") as log:
            process = await asyncio.create_subprocess_exec(
                Path(sys.executable).with_name("deltaloop"), "run", str(Path(__file__).with_name("scaled.py")),
                "--shards", "--leader-election-id", "deployments", "--identity", name,
                "--metrics-bind-address", f"127.0.0.1:{port}", "--health-probe-bind-address", "0",
                stdout=log, stderr=log, env={**self.place.environment(), "POD": name, "JOURNAL": str(journal)},
            )  # fmt: skip
        return Member(process, port)

    async def age(self, name: str, metric: str) -> float | None:
        """Return the highest sample of a metric of one member, or None if it cannot be read."""
        member = self.members.get(name)
        if member is None:
            return None
        timeout = aiohttp.ClientTimeout(total=2)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://127.0.0.1:{member.port}/metrics") as answer,
            ):
                page = await answer.text()
        except (OSError, TimeoutError, aiohttp.ClientError):
            return None
        samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
        return max((each.value for each in samples if each.name == metric), default=None)

    async def end(self) -> None:
        for member in self.members.values():
            if member.process.returncode is None:
                member.process.terminate()
        for member in self.members.values():
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await member.process.wait()
            except TimeoutError:
                member.process.kill()
                await member.process.wait()


@contextlib.asynccontextmanager
async def custom_metrics(kubelet: Kubelet) -> AsyncGenerator[None]:
    """Serve the custom metrics API for the Pods, and register it with the API server."""

    async def resources(_: web.Request) -> web.Response:
        verbs = {"kind": "MetricValueList", "namespaced": True, "verbs": ["get"], "singularName": ""}
        return web.json_response(
            {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": GROUP,
                "resources": [{"name": "pods/*", **verbs}],
            }
        )

    async def values(request: web.Request) -> web.Response:
        metric, now = request.match_info["metric"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pods = [name for name, member in kubelet.members.items() if member.ready]
        ages = await asyncio.gather(*(kubelet.age(name, metric) for name in pods))
        items = [
            {
                "describedObject": {"kind": "Pod", "apiVersion": "/v1", "namespace": "default", "name": name},
                "metric": {"name": metric},
                "timestamp": now,
                "value": f"{round(age * 1000)}m",
            }
            for name, age in zip(pods, ages, strict=True)
            if age is not None
        ]
        return web.json_response({"kind": "MetricValueList", "apiVersion": GROUP, "metadata": {}, "items": items})

    app = web.Application()
    app.router.add_get(f"/apis/{GROUP}", resources)
    app.router.add_get(f"/apis/{GROUP}/namespaces/default/pods/*/{{metric}}", values)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    port = free_port()
    context = CertificateAuthority.make().server_context(host="localhost")
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
    group, _, version = GROUP.partition("/")
    service: dict[str, Any] = {
        "metadata": {"name": "metrics", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    await kubelet.client.create(SERVICE, service)
    spec = {
        "group": group,
        "version": version,
        "service": {"namespace": "default", "name": "metrics", "port": port},
        "insecureSkipTLSVerify": True,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
    }
    api = {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
    await kubelet.client.create("apiregistration.k8s.io/v1/APIService", api)
    try:
        yield
    finally:
        await runner.cleanup()


@dataclass
class Seen:
    """State at one time."""

    at: float
    replicas: int
    ready: int
    age: float
    changes: int


@dataclass
class Run:
    """Load, and the states in this time."""

    client: dl.Client
    kubelet: Kubelet
    metric: str
    name: str
    began: float = field(default_factory=time.monotonic)
    changes: int = 0
    seen: list[Seen] = field(default_factory=list[Seen])

    async def load(self) -> None:
        """Change many objects at once, and then random objects at a constant rate."""
        chosen, objects = random.Random(1), [(f"c{number}", each) for each in NAMESPACES for number in range(OBJECTS)]
        await asyncio.gather(*(self._change(*each) for each in chosen.sample(objects, BURST)))
        due = time.monotonic()
        until = due + LOAD_SECONDS
        while due < until:
            await self._change(*chosen.choice(objects))
            due += 1 / RATE
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _change(self, name: str, namespace: str) -> None:
        self.changes += 1
        await self.client.patch(CONFIG_MAP, name, {"data": {"value": str(self.changes)}}, namespace=namespace)

    async def watch(self) -> None:
        while True:
            found = await self.client.get(DEPLOYMENT, self.name, namespace="default")
            members = [name for name, member in self.kubelet.members.items() if member.ready]
            ages = await asyncio.gather(*(self.kubelet.age(name, self.metric) for name in members))
            known = [age for age in ages if age is not None]
            at, mean = time.monotonic() - self.began, sum(known) / max(1, len(known))
            self.seen.append(Seen(at, found["spec"]["replicas"], len(known), mean, self.changes))
            print(
                f"{at:5.0f} s: {found['spec']['replicas']} replicas, {len(known)} ready, oldest keys "
                f"{mean:4.1f} s on average, at most {max(known, default=0.0):4.1f} s, {self.changes} changes",
                flush=True,
            )
            await asyncio.sleep(2)

    async def lost(self) -> list[str]:
        objects = await self.client.list_all(CONFIG_MAP)
        data = {each.key: each.get("data") or {} for each in objects if each.namespace.startswith("team-")}
        return [key for key, fields in data.items() if "value" in fields and fields.get("seen") != fields["value"]]


async def scale(place: Place) -> int:
    autoscaler = recipe()
    name, least = autoscaler["spec"]["scaleTargetRef"]["name"], autoscaler["spec"]["minReplicas"]
    age = age_of(autoscaler)
    metric, target = age["metric"]["name"], float(age["target"]["averageValue"])
    async with dl.connect(kubeconfig=str(place.kubeconfig)) as client, contextlib.AsyncExitStack() as stack:
        for namespace in NAMESPACES:
            await client.create(NAMESPACE, {"metadata": {"name": namespace}})
        objects = [(f"c{number}", namespace) for namespace in NAMESPACES for number in range(OBJECTS)]
        for each, namespace in objects:
            metadata = {"name": each, "namespace": namespace}
            obj: dict[str, Any] = {"metadata": metadata, "data": {"value": "0", "seen": "0"}}
            await client.create(CONFIG_MAP, obj)
        kubelet = Kubelet(client, place)
        stack.push_async_callback(kubelet.end)
        await client.create(DEPLOYMENT, deployment(name))
        async with custom_metrics(kubelet), asyncio.TaskGroup() as group:
            background = [group.create_task(kubelet.run())]
            await kubelet.until(lambda: sum(each.ready for each in kubelet.members.values()) >= least, seconds=60)
            autoscaler["metadata"]["namespace"] = "default"
            await client.create(HORIZONTAL_POD_AUTOSCALER, autoscaler)
            run = Run(client, kubelet, metric, name)
            background.append(group.create_task(run.watch()))
            await asyncio.sleep(10)
            await run.load()
            loaded = len(run.seen)
            with contextlib.suppress(TimeoutError):
                await kubelet.until(
                    lambda: run.seen[-1].replicas == len(kubelet.members) == least, seconds=SCALE_IN_SECONDS
                )
            lost = await run.lost()
            rescales = [
                each["message"]
                for each in await client.list_all(EVENT, namespace="default")
                if each["reason"] == "SuccessfulRescale"
            ]
            for task in background:
                task.cancel()
    print("\n".join(rescales))
    found = problems(run, loaded, lost, entries(kubelet.journals), least=least, target=target)
    if not any(metric in each for each in rescales):
        found.append("the age of the oldest keys added no replicas")
    print("\n".join(found) or "passed")
    return int(bool(found))


def problems(
    run: Run, loaded: int, lost: list[str], journal: list[dict[str, Any]], *, least: int, target: float
) -> list[str]:
    """Print the result, and return its problems."""
    busy = run.seen[:loaded]
    most, highest = max(each.replicas for each in run.seen), max(busy, key=lambda each: each.age)
    settled = [each for each in busy if each.at > busy[-1].at - SETTLED_SECONDS]
    late = max(each.age for each in settled)
    worked = {entry["by"] for entry in journal}
    twice = reconciled_twice(journal, {})
    reconciles = sum(entry["what"] == "begin" for entry in journal)
    print(f"{run.changes} changes, {reconciles} reconciles by {len(worked)} Pods in {run.seen[-1].at:.0f} s")
    print(
        f"replicas: {run.seen[0].replicas} at first, {most} at most, {busy[-1].replicas} at the end of the load, "
        f"{run.seen[-1].replicas} at last"
    )
    print(
        f"oldest key: {highest.age:.1f} s on average at {highest.at:.0f} s, at most {late:.1f} s in the last "
        f"{SETTLED_SECONDS:.0f} s of the load"
    )
    print(f"keys reconciled by two Pods at a time: {len(twice)} {twice[:3]}")
    print(f"keys lost: {len(lost)} {lost[:3]}")
    errors = [
        line
        for log in LOGS.glob("deployments-*.log")
        for line in log.read_text().splitlines()
        if re.search(" (ERROR|CRITICAL) ", line)
    ]
    print(f"errors in logs: {len(errors)} {errors[:3]}")
    conditions = {
        "replicas were added without load": any(each.replicas != least for each in busy if not each.changes),
        "no key waited longer than the target": highest.age < target,
        "no replicas were added": most < least + 2,
        "keys waited too long with more replicas": late >= target,
        "replicas were removed during the load": busy[-1].replicas <= least,
        "replicas were not removed after the load": run.seen[-1].replicas != least,
        "not all Pods reconciled": len(worked) < most,
        "keys were lost": bool(lost),
        "keys were reconciled by two Pods at a time": bool(twice),
        "Pods logged errors": bool(errors),
    }
    return [problem for problem, holds in conditions.items() if holds]


def programs() -> ControlPlaneAssets:
    """Return the binaries of the server, and build missing programs."""
    go = go_command()
    if go is None and not CONTROLLER_MANAGER.is_built():
        raise ControlPlaneError("kube-controller-manager would have to be built, and Go is missing")
    found = assets()
    build(go or "", CONTROLLER_MANAGER.program, CONTROLLER_MANAGER.folder)
    return found


def main() -> int:
    try:
        binaries = programs()
    except ControlPlaneError as error:
        print(f"skipped: {error}")
        return 0
    shutil.rmtree(LOGS, ignore_errors=True)
    with serving("real", binaries, LOGS) as place:
        manager: list[str | Path] = [
            CONTROLLER_MANAGER.path, f"--kubeconfig={place.kubeconfig}", "--secure-port=0", "--leader-elect=false",
            "--controllers=deployment-controller,replicaset-controller,horizontal-pod-autoscaler-controller",
            f"--horizontal-pod-autoscaler-sync-period={SYNC_PERIOD / FASTER}s",
        ]  # fmt: skip
        with running(place, "kube-controller-manager", manager):
            return asyncio.run(scale(place))


if __name__ == "__main__":
    sys.exit(main())
