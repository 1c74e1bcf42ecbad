"""What rules cost the embedded server: ``make -C lab bench-rules CRDS=FILE``, a file of CRDs as JSON lines, or gzipped.

Each sample is a process of its own, in which nothing is compiled yet; those with and without rules take turns. A figure
is CPU time of the whole process, with the client that sends the requests in it; each ratio is the median of those of
the rounds, with the interval that nine in ten of resampled medians fall into.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import aiohttp

from deltaloop.apiserver import ApiServer, ServerOptions
from lab.bench.cel import interval

RULES: Final = "x-kubernetes-validations"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
WRITES: Final = 400
MANY: Final = 100
ROUNDS: Final = 9
Post = Callable[[str, dict[str, Any]], Awaitable[None]]


def definitions(path: Path) -> list[dict[str, Any]]:
    """Return the CRDs of a file, each name once."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    objects = [json.loads(line) for line in data.splitlines() if line]
    found = [each.get("object", each) for each in objects]
    return list(
        {each["metadata"]["name"]: each for each in found if each["kind"] == "CustomResourceDefinition"}.values()
    )


def without_rules(value: object) -> Any:
    """Return a CRD without its rules."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {name: without_rules(inner) for name, inner in fields.items() if name != RULES}
    return [without_rules(inner) for inner in cast("list[object]", value)] if isinstance(value, list) else value


def definition(group: str, rules: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    """Return a CRD of widgets, with rules for a list of texts."""
    names = {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 50}}
    schema = {"type": "object", "properties": {"names": {**names, **({RULES: list(rules)} if rules else {})}}}
    version = {"name": "v1", "served": True, "storage": True}
    whole = {"type": "object", "properties": {"spec": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{**version, "schema": {"openAPIV3Schema": whole}}],
        },
    }


def policy(number: int, resource: str = "deployments") -> dict[str, Any]:
    """Return a policy of three validations."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    texts = (
        f"object.spec.replicas <= {number + 5}",
        "object.spec.template.spec.containers.all(c, c.image.startsWith('example.com/'))",
        "has(object.metadata.labels) && 'app' in object.metadata.labels",
    )
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [
            {"expression": text, "messageExpression": "'wrong: ' + object.metadata.name"} for text in texts
        ],
    }
    return {"metadata": {"name": f"p{number}"}, "spec": spec}


async def of_definitions(post: Post, path: Path, *, rules: bool) -> float:
    """Return the CPU time of creating all CRDs of a file; one with a rule has been created before."""
    await post(CRDS, definition("warm.example.com", [{"rule": "self.all(n, n != '')"}]))
    found = definitions(path)
    bodies = found if rules else [without_rules(each) for each in found]
    began = time.process_time()
    for body in bodies:
        await post(CRDS, body)
    return time.process_time() - began


async def of_writes(post: Post, path: Path, *, rules: bool) -> float:
    """Return the CPU time of a write to a kind without rules; other kinds have rules, or have not."""
    for body in definitions(path) if rules else ():
        await post(CRDS, body)
    return await _written(post)


async def of_writes_beside_policies(post: Post, path: Path, *, rules: bool) -> float:
    """Return the same; there are 20 policies for another kind, or none."""
    for number in range(20 if rules else 0):
        await post(POLICIES, policy(number))
        bound = {"policyName": f"p{number}", "validationActions": ["Deny"]}
        await post(BINDINGS, {"metadata": {"name": f"p{number}"}, "spec": bound})
    return await _written(post)


async def _written(post: Post) -> float:
    await post(CRDS, definition("plain.example.com"))
    names = {"names": [f"n{place}" for place in range(20)]}
    began = time.process_time()
    for number in range(WRITES):
        body = {"apiVersion": "plain.example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}}
        await post("/apis/plain.example.com/v1/widgets", {**body, "spec": names})
    return (time.process_time() - began) / WRITES


async def of_statuses(post: Post, path: Path, *, rules: bool) -> float:
    """Return the CPU time for each of many policies; with the controller that checks their types, or without."""
    began = time.process_time()
    for number in range(MANY):
        await post(POLICIES, policy(number))
    await asyncio.sleep(3)
    return (time.process_time() - began) / MANY


MEASURED: Final = {
    "definitions": of_definitions,
    "writes": of_writes,
    "writes beside policies": of_writes_beside_policies,
    "statuses": of_statuses,
}


async def sample(what: str, path: Path, *, rules: bool) -> float:
    """Return one figure, in seconds, of a server that is started for it."""
    controllers = frozenset({"policy-status"} if what == "statuses" and rules else ())
    async with (
        ApiServer(ServerOptions(insecure_http=True, controllers=controllers)) as server,
        aiohttp.ClientSession() as session,
    ):

        async def post(where: str, body: dict[str, Any]) -> None:
            async with session.post(server.url + where, json=body) as answer:
                if answer.status != 201:
                    raise RuntimeError(f"{where}: {await answer.text()}")

        return await MEASURED[what](post, path, rules=rules)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="the CRDs, a line each")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", choices=list(MEASURED), default=None, help="measure this alone")
    parser.add_argument("--sample", choices=list(MEASURED), default=None, help="take one sample in this process")
    parser.add_argument("--rules", action="store_true", help="with rules")
    options = parser.parse_args()
    if options.sample:
        print(asyncio.run(sample(options.sample, options.path, rules=options.rules)))
        return
    print("| | without, ms | with, ms | ratio |\n| --- | --- | --- | --- |")
    for what in [options.only] if options.only else MEASURED:
        pairs: list[tuple[float, float]] = []
        for _ in range(options.rounds):
            command = [sys.executable, "-m", "lab.bench.rules", str(options.path), "--sample", what]
            without, having = (
                float(subprocess.check_output([*command, *more], timeout=120)) for more in ([], ["--rules"])
            )
            pairs.append((without, having))
        ratios = [having / without for without, having in pairs]
        without, having = (statistics.median(each) * 1e3 for each in zip(*pairs, strict=True))
        least, most = interval(ratios)
        print(
            f"| {what} | {without:.2f} | {having:.2f} | {statistics.median(ratios):.2f} ({least:.2f} to {most:.2f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
