"""Time and memory of a plan of many objects: ``python -m lab.plan.scale --objects 100000``.

Half of the objects are Sites with about 1 KB, the other half their ConfigMaps. The first process makes them, the second
only runs an embedded server with them, and the third plans the running version.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

import deltaloop as dl
from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.embedding import manifests_of
from deltaloop.planning.plans import file_snapshot, version_of
from deltaloop.planning.reading import FORMAT
from deltaloop.planning.run import LoadedSnapshot, run_plan


class SiteSpec(msgspec.Struct):
    """What is wanted."""

    text: str


@dl.custom_resource(group="example.com", version="v1")
class Site(msgspec.Struct, kw_only=True):
    """A site."""

    metadata: dl.ObjectMeta
    spec: SiteSpec


@dl.controller(Site, children=[dl.kinds.CONFIG_MAP], workers=16)
async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
    """Keep a ConfigMap for each Site."""
    site = await ctx.client.find(Site, request.name)
    if site is None:
        return
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": request.name}}
    await ctx.children.apply({**config, "data": {"text": site.spec.text}})


VERSION = version_of("sites", sys.modules[__name__], (reconcile,))


def make(count: int, file: Path) -> None:
    """Let the program create the ConfigMaps, and write all objects to a snapshot."""
    sites = [
        {
            "apiVersion": "example.com/v1",
            "kind": "Site",
            "metadata": {
                "name": f"site-{number}",
                "namespace": "default",
                "uid": f"uid-{number}",
                "resourceVersion": "5",
            },
            "spec": {"text": f"{number} " * 60},
        }
        for number in range(count // 2)
    ]
    snapshot = LoadedSnapshot(definitions=VERSION.definitions).load(manifests_of(sites, source="made"))
    outcome = run_plan(VERSION, snapshot, keep_objects=True)
    assert not outcome.plan.problems, outcome.plan.problems[:3]
    with file.open("w") as out:
        out.write(json.dumps({"snapshot": FORMAT, "taken": "2026-01-01T00:00:00Z"}) + "\n")
        for fields in (*VERSION.definitions, *sites, *(after for _, after in outcome.changed.values() if after)):
            out.write(msgspec.json.encode(fields).decode() + "\n")
        out.write(json.dumps({"end": FORMAT, "objects": count}) + "\n")


def serve(file: Path) -> None:
    """Only run a server with the objects."""

    async def live() -> None:
        snapshot = file_snapshot(file, VERSION)
        async with ApiServer(snapshot.options(), begins_with=snapshot.state):
            await asyncio.sleep(1)

    asyncio.run(live())


def plan(file: Path) -> None:
    """Plan the running version."""
    outcome = run_plan(VERSION, file_snapshot(file, VERSION))
    assert not outcome.plan.changes, outcome.plan.changes[:2]
    assert not outcome.plan.problems, outcome.plan.problems[:2]
    print(str(outcome.plan).splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--file", type=Path)
    arguments = parser.parse_args()
    if arguments.only:
        began = time.process_time()
        {"make": lambda: make(arguments.objects, arguments.file), "serve": lambda: serve(arguments.file),
         "plan": lambda: plan(arguments.file)}[arguments.only]()  # fmt: skip
        seconds, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"phase": arguments.only, "cpu": round(seconds, 1), "kib": memory}))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.jsonl"
        found: dict[str, dict[str, int]] = {}
        for phase in ("make", "serve", "plan"):
            command = [
                sys.executable,
                "-m",
                "lab.plan.scale",
                "--only",
                phase,
                "--file",
                str(file),
                "--objects",
                str(arguments.objects),
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
            assert not done.returncode, done.stderr[-3000:]
            print(done.stdout.strip(), flush=True)
            found[phase] = json.loads(done.stdout.splitlines()[-1])
        more = (found["plan"]["kib"] - found["serve"]["kib"]) * 1024 / arguments.objects
        size, verdict = file.stat().st_size / arguments.objects, "ok" if more <= 2560 else "TOO MUCH"
        print(f"{size:.0f} bytes an object in the file; the plan needs {more:.0f} more than the server: {verdict}")


if __name__ == "__main__":
    main()
