"""Steps: a chart's whole life with Helm, by its three-way patches (3) and by server-side apply (4)."""

from __future__ import annotations

import json
from pathlib import Path

from lab.world import build
from lab.world.build import WorldProgram
from lab.world.settled import is_ready
from lab.world.world import Output, World

CHART = str(Path(__file__).with_name("chart"))
KINDS = ("deployments", "services", "configmaps", "roles", "rolebindings", "poddisruptionbudgets", "jobs")
WAIT = ("--wait", "--timeout", "60s")


async def helm_3(world: World) -> None:
    """Helm 3 installs, upgrades, fails, rolls back and removes a chart."""
    await _life(world, build.HELM_3)


async def helm_4(world: World) -> None:
    """Helm 4 does the same by server-side apply."""
    await _life(world, build.HELM_4)


async def _life(world: World, program: WorldProgram) -> None:
    async def helm(*arguments: str, fails: bool = False) -> Output:
        return await world.run([program.path, "-n", world.namespace, *arguments], fails=fails)

    world.record_text("install", await helm("install", "shop", CHART, *WAIT))
    await world.until_all("pods", lambda pod: pod["status"]["phase"] == "Succeeded" or is_ready(pod), count=3)
    await world.record_objects("installed", *KINDS, "shops.world.deltaloop.dev")
    await world.record_table("list shops", "shops")
    world.record_text("again", await helm("install", "shop", CHART, fails=True))
    changed = ("--set", "replicas=3", "--set", "colour=red", "--set", "image=example.com/shop:2")
    world.record_text("upgrade", await helm("upgrade", "shop", CHART, *changed, *WAIT))
    await world.record_objects("upgraded", *KINDS, "shops.world.deltaloop.dev")
    # A selector cannot be changed: the server refuses one object of the release.
    world.record_text("refused", await helm("upgrade", "shop", CHART, "--set", "selector=other", *WAIT, fails=True))
    # No node is like that: the Pods never become ready.
    nowhere = ("--set-json", 'nodeSelector={"zone":"nowhere"}', "--wait", "--timeout", "5s")
    world.record_text("never ready", await helm("upgrade", "shop", CHART, *nowhere, fails=True))
    world.record("status", _release(await helm("status", "shop", "-o", "json")))
    world.record_text("rollback", await helm("rollback", "shop", "2", *WAIT))
    await world.record_objects("rolled back", *KINDS, "shops.world.deltaloop.dev")
    world.record("history", json.loads((await helm("history", "shop", "-o", "json")).stdout))
    world.record("list", json.loads((await helm("list", "-o", "json")).stdout))
    await world.record_table("releases", "secrets", "--field-selector=type=helm.sh/release.v1", "--show-labels")
    world.record_text("uninstall", await helm("uninstall", "shop", *WAIT))

    async def is_gone() -> bool:
        left = [each for kind in ("deployments.apps", "pods", "secrets") for each in await world.objects(kind)]
        return all(each.name.startswith("shop-migrate") for each in left)

    await world.until("what the chart made is gone", is_gone)
    await world.record_table("left", ",".join(KINDS))


def _release(output: Output) -> dict[str, object]:
    found = json.loads(output.stdout)
    # Which of the Pods are there yet is left out: they are being replaced.
    info = {name: value for name, value in found["info"].items() if name != "resources"}
    return {"info": info, **{name: found[name] for name in ("name", "namespace", "version")}}
