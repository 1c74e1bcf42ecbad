"""What a real server made of objects of built-in kinds: defaults, refusals, conversions, what updates may change.

``builtin_facts.json`` has one fact a line: requests, and the answer to each, with names, addresses, ports, times and
uids as ``$NAME``, ``$IP``, ``$PORT``, ``$TIME`` and ``$UID``. The requests are written by hand; "put back" sends what
was answered last, and "same" means that the object is what it was before. The answers are written by
``python -m tests.conformance.builtin_facts``, which asks a real server.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from deltaloop.testing.servers.control_plane import ControlPlane, find_assets

FILE = Path(__file__).with_name("builtin_facts.json")
_KINDS = json.loads((Path(__file__).parents[2] / "tools" / "builtin_tables" / "observed.json").read_text())["kinds"]
CLUSTER_WIDE = frozenset(kind["plural"] for kind in _KINDS if not kind["namespaced"])
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
_UID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_SIGNS = (
    (re.compile(r'"10\.0\.\d+\.\d+"'), '"$IP"'),
    (re.compile(r'(?<=odePort":)3[012]\d{3}\b'), '"$PORT"'),
    (re.compile(r'"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"'), '"$TIME"'),
)
_ANSWERED = ("code", "object", "same", "causes", "message")
Fact = dict[str, Any]
Send = Callable[[str, str, Any], Awaitable[tuple[int, dict[str, Any]]]]


def read_facts() -> list[Fact]:
    facts: list[Fact] = json.loads(FILE.read_text())
    return facts


def plural_of(fact: Fact) -> str:
    return str(fact["where"]).split()[1]


def seen(code: int, answer: dict[str, Any], *, namespace: str, name: str) -> dict[str, Any]:
    """Return an answer as facts have it."""
    text = json.dumps(answer, separators=(",", ":")).replace(namespace, "$NS").replace(name, "$NAME")
    answer = json.loads(_UID.sub("$UID", text))
    if code < 300:
        metadata = {key: value for key, value in answer["metadata"].items() if key not in _SERVER_FIELDS}
        text = json.dumps({**answer, "metadata": metadata}, separators=(",", ":"))
        for pattern, sign in _SIGNS:
            text = pattern.sub(sign, text)
        return {"code": code, "object": json.loads(text)}
    causes: list[dict[str, str]] = answer.get("details", {}).get("causes", [])
    if code != 422 or not causes:
        return {"code": code, "message": answer["message"]}
    # Where one cause comes twice, it is told once here; see docs/reference/embedded-server.md.
    told = sorted({(cause.get("field", ""), cause["message"].partition("\n")[0]) for cause in causes})
    return {"code": code, "causes": [list(cause) for cause in told]}


async def ask(fact: Fact, send: Send, *, namespace: str, name: str) -> list[dict[str, Any]]:
    """Send a fact's requests and return what was answered.

    Args:
        fact: The fact.
        send: Sends a verb, a path and a body.
        namespace: A namespace that there is.
        name: A name that nothing of this kind has.
    """
    answers: list[dict[str, Any]] = []
    last: dict[str, Any] = {}
    before: dict[str, Any] = {}
    for step in fact["steps"]:
        api, plural = step.get("where", fact["where"]).split()
        path = f"{api}/{plural}" if plural in CLUSTER_WIDE else f"{api}/namespaces/{namespace}/{plural}"
        body = json.loads(json.dumps(step.get("body")).replace("$NS", namespace).replace("$NAME", name))
        if step["verb"] != "create":
            path = f"{path}/{name}" + ("/status" if step["verb"] == "status" else "")
        if step["verb"] == "apply":
            body = {"kind": last["kind"], "apiVersion": last["apiVersion"], **body}
        elif step["verb"] == "put back":
            body = last
        code, last = await send(step["verb"], path, body)
        answer = seen(code, last, namespace=namespace, name=name)
        if step["verb"] in ("apply", "put back") and answer.get("object", {}) == before.get("object"):
            answers.append({"code": code, "same": True})
            continue
        before = answer
        answers.append(answer)
    return answers


def expected(fact: Fact) -> list[dict[str, Any]]:
    return [{key: step[key] for key in _ANSWERED if key in step} for step in fact["steps"]]


async def _record() -> None:
    # Imported here: the conformance target takes the server's library along, which reading facts has no need of.
    from tests.conformance.target import Api, RealTarget

    assets = find_assets()
    if assets is None:
        sys.exit("no kube-apiserver: run `make -C lab kube`")
    facts = read_facts()
    with ControlPlane(assets) as server:
        async with RealTarget(server).open() as api:
            assert isinstance(api, Api)
            # A LimitRange would change the pods beside it.
            for plural in dict.fromkeys(map(plural_of, facts)):
                await api.created("/api/v1/namespaces", {"metadata": {"name": f"facts-of-{plural}"}})
            for place, fact in enumerate(facts):
                namespace = f"facts-of-{plural_of(fact)}"
                answers = await ask(fact, sender(api), namespace=namespace, name=f"fact-{place}-z")
                for step, answer in zip(fact["steps"], answers, strict=True):
                    for key in _ANSWERED:
                        step.pop(key, None)
                    step.update(answer)
    lines = ",\n".join(json.dumps(fact, separators=(",", ":")) for fact in facts)
    FILE.write_text(f"[\n{lines}\n]\n")
    print(f"{len(facts)} facts")


def sender(api: Any) -> Send:
    """Send through the caller of a conformance case."""

    async def send(verb: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        if verb == "create":
            answer = await api.post(path, body)
        elif verb == "get":
            answer = await api.get(path)
        elif verb == "put back":
            answer = await api.put(path, body)
        elif verb == "apply":
            answer = await api.apply(path, body, query="&force=true")
        else:
            answer = await api.patch(path, body)
        return answer.status, answer.json

    return send


if __name__ == "__main__":
    asyncio.run(_record())
