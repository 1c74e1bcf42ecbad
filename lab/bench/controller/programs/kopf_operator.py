"""The operator on kopf, as one who knows it would write it for many objects.

What kopf writes of its own accord is kept to the least:

* what it remembers of an object is in the status (``StatusDiffBaseStorage``), so that it goes with the status in one
  patch instead of being an annotation in a patch of its own;
* there are no finalizers (nothing handles deletions) and no events (``posting``), and nobody else's peering;
* nothing is scanned, and there is no line of the log for each object.

kopf's workers are not limited to 16: each stays with its object for seconds after it is done, so that a limit lets no
more than so many objects through in that time. The connections for config maps are limited to 16 instead.

kopf has no client for other objects, so aiohttp, which it brings, writes config maps: what is cheapest. Which of them
there are is known from kopf's index of them (``BENCH_FORM=index``), or from a dict of the operator's own that a
list at the start, an event handler and the writes themselves fill (``dict``).
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import ssl
from importlib import import_module
from pathlib import Path
from typing import Any

import aiohttp

from lab.bench.controller.objects import API_VERSION, GROUP, VERSION

kopf: Any = import_module("kopf")
GREETINGS = (GROUP, VERSION, "greetings")
CONFIG_MAPS = ("", "v1", "configmaps")
INDEXED = os.environ["BENCH_FORM"] == "index"
KUBECONFIG: Any = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
children: dict[tuple[str, str], dict[str, Any]] = {}
sessions: list[aiohttp.ClientSession] = []


async def configure(settings: Any, **_: Any) -> None:
    """Set what the head of this module says."""
    settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage()
    settings.persistence.progress_storage = kopf.StatusProgressStorage()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.server_timeout = 3600
    config = KUBECONFIG
    cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    session = aiohttp.ClientSession(
        cluster["server"],
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(ssl=trust, limit=16),
        raise_for_status=True,
    )
    sessions.append(session)
    if not INDEXED:
        async with session.get("/api/v1/configmaps") as answer:
            for each in (await answer.json())["items"]:
                children[each["metadata"]["namespace"], each["metadata"]["name"]] = each


async def write(namespace: str, owner: Any, message: str, there: dict[str, Any] | None) -> None:
    """Make or change the config map of an object, if it is not as it should be."""
    name = owner["metadata"]["name"]
    if there is not None and there.get("data") == {"message": message}:
        return
    metadata = {"name": name} if there is None else there["metadata"]
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"message": message}}
    reference = {"apiVersion": API_VERSION, "kind": "Greeting", "name": name, "uid": owner["metadata"]["uid"]}
    metadata["ownerReferences"] = [{**reference, "controller": True, "blockOwnerDeletion": True}]
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    method, path = ("POST", path) if there is None else ("PUT", f"{path}/{name}")
    try:
        async with sessions[0].request(method, path, json=child) as answer:
            children[namespace, name] = await answer.json()
    except aiohttp.ClientResponseError as error:
        if error.status == 409:
            raise kopf.TemporaryError("what is known of the config map is behind", delay=1) from None
        raise


def say(body: Any, message: str, patch: Any) -> None:
    """Have the status repeat the message, if it does not; what is set is sent even if it changes nothing."""
    status: dict[str, Any] = body.get("status") or {}
    if status.get("message") != message:
        patch.status["message"] = message


async def with_dict(namespace: str, name: str, body: Any, spec: Any, patch: Any, **_: Any) -> None:
    """Make what one Greeting asks for come true; config maps are in the dict."""
    await write(namespace, body, spec["message"], children.get((namespace, name)))
    say(body, spec["message"], patch)


async def with_index(namespace: str, name: str, body: Any, spec: Any, patch: Any, by_key: Any, **_: Any) -> None:
    """Make what one Greeting asks for come true; config maps are in kopf's index."""
    there = by_key.get((namespace, name))
    await write(namespace, body, spec["message"], next(iter(there)) if there else None)
    say(body, spec["message"], patch)


def keep(namespace: str, name: str, body: Any, type: str | None, **_: Any) -> None:  # noqa: A002
    """Keep a config map in the dict."""
    if type == "DELETED":
        children.pop((namespace, name), None)
    else:
        children[namespace, name] = dict(body)


def by_key(namespace: str, name: str, body: Any, **_: Any) -> Any:
    """Keep a config map in the index."""
    return {(namespace, name): dict(body)}


def main() -> None:
    """Run until the process is told to end."""
    kopf.on.startup()(configure)
    if INDEXED:
        kopf.index(*CONFIG_MAPS)(by_key)
    else:
        kopf.on.event(*CONFIG_MAPS)(keep)
    handler = with_index if INDEXED else with_dict
    for decorator in (kopf.on.create, kopf.on.resume):
        decorator(*GREETINGS)(handler)
    kopf.on.update(*GREETINGS, field="spec")(handler)
    logging.disable(logging.WARNING)
    asyncio.run(kopf.operator(clusterwide=True, standalone=True))


if __name__ == "__main__":
    main()
