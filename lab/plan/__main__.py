"""Compare plans with reality: ``python -m lab.plan --databases 400 --greeters 200``.

On a real kube-apiserver, the plan of the running version must report no changes and send only lists. For each of ten
changes, the set of changed objects in the plan must equal the set that changes when the new version runs on the server.
This program plays the part of the controller manager: it writes the status of workloads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

import deltaloop as dl
from deltaloop.api.json_values import at
from deltaloop.cli.generate.crd import load_definitions
from deltaloop.testing.servers.cluster import write_kubeconfig
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from lab.plan.versions import EDITS, edited, sources, write

KINDS = (
    "example.com/v1/Database", "example.com/v1alpha1/Greeter", "v1/Secret", "v1/Service", "v1/LimitRange",
    "apps/v1/StatefulSet", "apps/v1/Deployment", "apiextensions.k8s.io/v1/CustomResourceDefinition",
)  # fmt: skip
NAMESPACE = "default"
RESTS_AFTER = 6.0
LIMIT = 240.0
Objects = dict[tuple[str, str], dict[str, Any]]
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata, users: [admin]}, {level: None}]
"""


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "deltaloop", *map(str, words)]


async def objects(client: dl.Client) -> Objects:
    """Return all objects of the programs by kind and key, without the fields that the server maintains."""
    found: Objects = {}
    for kind in KINDS:
        for obj in await client.list_all(kind):
            fields = json.loads(obj.raw)
            metadata = {
                k: v
                for k, v in fields["metadata"].items()
                if k not in ("managedFields", "generation", "resourceVersion")
            }
            # Defaults of a CRD are visible in each response, so the version tells whether an object was stored again.
            found[kind, obj.key] = {**fields, "metadata": metadata, "stored": obj.resource_version}
    return found


def changed(before: Objects, after: Objects) -> set[tuple[str, str]]:
    def differ(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
        if one is None or other is None:
            return one is not other
        plain = [{name: value for name, value in each.items() if name != "stored"} for each in (one, other)]
        return one["stored"] != other["stored"] and plain[0] != plain[1]

    return {place for place in {*before, *after} if differ(before.get(place), after.get(place))}


async def play_controllers(client: dl.Client) -> int:
    """Write the status of workloads that have changed, as the controller manager would at the end of a rollout."""
    written = 0
    for kind in ("apps/v1/StatefulSet", "apps/v1/Deployment"):
        for obj in await client.list_all(kind):
            replicas = at(obj.to_dict(), "spec", "replicas")
            if at(obj.to_dict(), "status", "observedGeneration") == obj.generation:
                continue
            status: dict[str, Any] = {
                "observedGeneration": obj.generation,
                "replicas": replicas,
                "readyReplicas": replicas,
            }
            status |= {"updatedReplicas": replicas, "availableReplicas": replicas}
            if kind.endswith("StatefulSet"):
                status |= {"currentReplicas": replicas, "currentRevision": "r", "updateRevision": "r"}
            else:
                now = "2026-01-01T00:00:00Z"
                status["conditions"] = [
                    {
                        "type": name,
                        "status": "True",
                        "reason": "NewReplicaSetAvailable" if name == "Progressing" else "MinimumReplicasAvailable",
                        "message": "",
                        "lastTransitionTime": now,
                        "lastUpdateTime": now,
                    }
                    for name in ("Available", "Progressing")
                ]
            await client.patch(kind, obj.name, {"status": status}, namespace=obj.namespace, subresource="status")
            written += 1
    return written


async def run_for_real(client: dl.Client, module: Path, kubeconfig: Path) -> float:
    """Run a version until neither it nor the played controllers write any more."""
    began = time.monotonic()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        health = f"127.0.0.1:{free.getsockname()[1]}"
    addresses = ("--health-probe-bind-address", health, "--metrics-bind-address", "0")
    log = (module.parent / "run.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        *command("run", module, "--kubeconfig", kubeconfig, *addresses), stdout=log, stderr=log
    )
    try:
        while not await asyncio.to_thread(is_ready, health):
            assert time.monotonic() - began < LIMIT, "the version does not start"
            await asyncio.sleep(0.5)
        quiet_since, seen = time.monotonic(), ""
        while time.monotonic() - quiet_since < RESTS_AFTER:
            assert time.monotonic() - began < LIMIT, "the version does not rest"
            assert process.returncode is None, (module.parent / "run.log").read_text()[-2000:]
            played = await play_controllers(client)
            state = str([sorted(o.resource_version for o in await client.list_all(kind)) for kind in KINDS])
            if played or state != seen:
                quiet_since, seen = time.monotonic(), state
            await asyncio.sleep(1)
    finally:
        process.terminate()
        await process.wait()
        log.close()
    return time.monotonic() - began


def is_ready(health: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{health}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def plan(module: Path, kubeconfig: Path) -> tuple[dict[str, Any], float, int]:
    """Return the plan of a version on the real server, with the CPU seconds of the command and its memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command("plan", module, "--kubeconfig", kubeconfig, "--output", "json"),
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    found["exit"] = done.returncode
    return found, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss // 1024


async def install(client: dl.Client, module: Path) -> None:
    for definition in load_definitions(str(module)):
        name = definition["metadata"]["name"]
        current = await client.find("apiextensions.k8s.io/v1/CustomResourceDefinition", name)
        if current is None:
            await client.create("apiextensions.k8s.io/v1/CustomResourceDefinition", definition)
        else:
            await client.update(
                "apiextensions.k8s.io/v1/CustomResourceDefinition", {**current.to_dict(), "spec": definition["spec"]}
            )
    await asyncio.sleep(2)


def verbs_since(log: Path, position: int) -> Counter[str]:
    with log.open("rb") as file:
        file.seek(position)
        return Counter(msgspec.json.decode(line)["verb"] for line in file)


async def compare(arguments: argparse.Namespace, folder: Path) -> bool:
    policy, log, kubeconfig = folder / "policy.yaml", folder / "audit.log", folder / "kubeconfig"
    policy.write_text(POLICY)
    assets = find_assets()
    if assets is None:
        print("no kube-apiserver: run make -C lab kube")
        return False
    extra = [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
    with ControlPlane(assets, start_timeout=120, extra_arguments=extra) as plane:
        write_kubeconfig(kubeconfig, plane.kubeconfig())
        async with dl.connect(kubeconfig=kubeconfig) as client:
            files = sources()
            module = write(folder / "v0", files)
            await asyncio.to_thread(install_in_process, module, kubeconfig)
            for number in range(arguments.databases):
                await client.create(
                    "example.com/v1/Database", {"metadata": {"name": f"db-{number}"}, "spec": {}}, namespace=NAMESPACE
                )
            for number in range(arguments.greeters):
                spec = {"image": "example.com/web:1"}
                await client.create(
                    "example.com/v1alpha1/Greeter",
                    {"metadata": {"name": f"hi-{number}"}, "spec": spec},
                    namespace=NAMESPACE,
                )
            seconds = await run_for_real(client, module, kubeconfig)
            before = await objects(client)
            print(f"{len(before)} objects made by the first version in {seconds:.0f} s", flush=True)
            position = log.stat().st_size
            found, cpu, memory = await asyncio.to_thread(plan, module, kubeconfig)
            verbs = verbs_since(log, position)
            good = not found["changes"] and not found["problems"] and set(verbs) == {"list"}
            print(f"running version: exit {found['exit']}, {len(found['changes'])} changes, requests {dict(verbs)}, "
                  f"{cpu:.1f} CPU s, {memory} MiB: {'ok' if good else 'WRONG'}", flush=True)  # fmt: skip
            if not good:
                print(json.dumps(found)[:3000])
            for number, edit in enumerate(EDITS, start=1):
                if arguments.only and edit.name not in arguments.only:
                    continue
                files = edited(files, edit)
                module = write(folder / f"v{number}", files)
                found, cpu, _ = await asyncio.to_thread(plan, module, kubeconfig)
                expected = {(each["kind"], each["key"]) for each in found["changes"] if each["controller"]}
                await asyncio.to_thread(install_in_process, module, kubeconfig)
                await run_for_real(client, module, kubeconfig)
                after = await objects(client)
                real = changed(before, after)
                same = expected == real
                good = good and same
                kinds = dict(sorted(Counter(kind for kind, _ in expected).items()))
                said = f"plan {len(expected)} {kinds}, restarts {len(found['restarts'])}, exit {found['exit']}"
                verdict = "equal" if same else "DIFFERENT"
                print(f"{edit.name}: {said}, {cpu:.1f} CPU s; really {len(real)}: {verdict}", flush=True)
                if not same:
                    print("  only planned", sorted(expected - real)[:3], "only real", sorted(real - expected)[:3])
                    for place in sorted(real - expected)[:1]:
                        print("  ", before.get(place), "\n  ", after.get(place))
                    print("  problems", found["problems"][:2])
                before = after
            return good


def install_in_process(module: Path, kubeconfig: Path) -> None:
    """Apply the CRDs of a version in a process of its own, because a process can import only one version."""
    code = (
        "import asyncio, sys; from pathlib import Path; import deltaloop as dl; from lab.plan.__main__ import install\n"
        "async def main():\n"
        "    async with dl.connect(kubeconfig=sys.argv[2]) as client: await install(client, Path(sys.argv[1]))\n"
        "asyncio.run(main())"
    )
    subprocess.run([sys.executable, "-c", code, str(module), str(kubeconfig)], check=True, timeout=120, env=os.environ)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--databases", type=int, default=400)
    parser.add_argument("--greeters", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=[])
    with tempfile.TemporaryDirectory(prefix="lab-plan-") as folder:
        return 0 if asyncio.run(compare(parser.parse_args(), Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
