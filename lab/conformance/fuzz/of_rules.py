"""Fuzz rules in CRDs: ``make -C lab fuzz-rules``. Random rules, broken ones and objects go to both servers.

It ends after ``--evaluations`` of rules. It fails if a verdict differs, or more than one answer in a hundred otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from tests.conformance.target import CRDS, Api, EmbeddedTarget, RealTarget, widget_crd

from deltaloop.testing.servers.control_plane import ControlPlane, find_assets
from lab.conformance.fuzz.rules import RULES, Chance, Json, count

FIELDS: Final = 12
OBJECTS: Final = 12
SAME: Final = 0.99
_MADE_UP: Final = re.compile(r"selfType\d*")
# After an error of syntax, cel-go's parser tries to go on.
_SYNTAX: Final = re.compile(r"compilation failed: .*Syntax error: .*", re.DOTALL)
_OPEN: Final[Json] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Comparison:
    """What both servers answered."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.shown = 0

    def add(self, what: str, rules: int, one: list[Any], two: list[Any], about: Any) -> None:
        """Count two answers, and show those that differ."""
        self.counts[f"{what}s"] += 1
        self.counts["evaluations"] += rules
        self.counts[f"{what}s taken"] += two[0] < 300
        if one == two:
            return
        verdict = (one[0] < 300) != (two[0] < 300) or _fields(one) != _fields(two)
        self.counts[f"{what}s with another {'verdict' if verdict else 'text'}"] += 1
        if self.shown < 40 or verdict:
            self.shown += 1
            only = [each for each in one if each not in two], [each for each in two if each not in one]
            print(f"{what} {about}\n  embedded: {str(only[0])[:1500]}\n  real:     {str(only[1])[:1500]}", flush=True)

    def fails(self) -> bool:
        """Tell whether there are too many differences."""
        kinds = ("schema", "broken schema", "object", "change")
        texts = sum(self.counts[f"{kind}s with another text"] for kind in kinds)
        verdicts = sum(self.counts[f"{kind}s with another verdict"] for kind in kinds)
        return verdicts > 0 or texts > (1 - SAME) * sum(self.counts[f"{kind}s"] for kind in kinds)


def _fields(answer: list[Any]) -> list[str]:
    return sorted({str(each).partition(": ")[0] for each in answer[1:]})


def _seen(answer: Any) -> list[Any]:
    if answer.status < 300:
        return [answer.status, *sorted(answer.headers.getall("Warning", []))]
    causes = answer.json.get("details", {}).get("causes")
    told = [f"{each.get('field')}: {each['message']}" for each in causes or ()] or [answer.json["message"]]
    return [answer.status, *sorted({_general(each) for each in told})]


def _general(text: str) -> str:
    """Return a text without names that are made up, and without errors of syntax."""
    return _SYNTAX.sub("", _MADE_UP.sub("selfType", text))


async def run(apis: tuple[Api, Api], chance: Chance, comparison: Comparison, evaluations: int, broken: int) -> None:
    """Send CRDs and objects until there are enough."""
    number = 0
    while comparison.counts["evaluations"] < evaluations or comparison.counts["broken schemas"] < broken:
        number += 1
        fields = {f"f{n}": chance.with_rules(chance.schema()) for n in range(FIELDS)}
        fields = {name: field for name, field in fields.items() if count(field)}
        for name, field in fields.items() if comparison.counts["broken schemas"] < broken else ():
            if field.get(RULES):
                wrong = {**field, RULES: [chance.broken(field[RULES][0]), *field[RULES][1:]]}
                await _define(apis, f"b{number}", {name: wrong}, comparison, "broken schema")
        kept: Json = {}
        # Now and then few of them, so that some objects are taken.
        few = fields if chance.often(0.5) else dict(chance.some(fields.items(), 2))
        for name, field in few.items():
            if await _define(apis, f"c{number}", {name: field}, comparison, "schema"):
                kept[name] = field
        if kept:
            await _objects(apis, chance, comparison, f"d{number}", kept)


async def _define(apis: tuple[Api, Api], name: str, fields: Json, comparison: Comparison, what: str) -> bool:
    crd = _crd(f"{name}.example.com", fields)
    one, two = [await api.post(f"{CRDS}?dryRun=All", crd) for api in apis]
    comparison.add(what, 0, _seen(one), _seen(two), fields)
    return one.status == two.status == 201


def _crd(group: str, fields: Json, rules: Sequence[Json] = ()) -> Json:
    schema: Json = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": fields}},
        RULES: list(rules),
    }
    crd = widget_crd(group, schema=schema, versions=("v1", "v2"), status=False, scale=False, scope="Cluster")
    crd["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": _OPEN}
    return crd


async def _objects(apis: tuple[Api, Api], chance: Chance, comparison: Comparison, name: str, fields: Json) -> None:
    group = f"{name}.example.com"
    root = chance.root_rules() if chance.often(0.5) else []
    crd = _crd(group, fields, root)
    for api in apis:
        answer = await api.post(CRDS, crd)
        if answer.status != 201:
            print("no CRD", answer.text[:300], flush=True)
            return
    paths = [await api.served(crd) for api in apis]
    schema = {"type": "object", "properties": fields}
    rules = count(schema) + len(root)
    for number in range(OBJECTS):
        spec = {field: chance.of(part) for field, part in fields.items() if chance.often(0.9)}
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}, "spec": spec}
        one, two = [await api.post(f"{path}?dryRun=All", widget) for api, path in zip(apis, paths, strict=True)]
        comparison.add("object", rules, _seen(one), _seen(two), _about(fields, spec, _seen(one), _seen(two)))
        after = {field: chance.changed(fields[field], value) for field, value in spec.items()}
        answers: list[list[Any]] = []
        for api, path in zip(apis, paths, strict=True):
            stored = await api.post(path.replace("/v1/", "/v2/"), {**widget, "apiVersion": f"{group}/v2"})
            version = {"resourceVersion": stored.json["metadata"].get("resourceVersion")}
            changed = {**widget, "metadata": {"name": f"w{number}", **version}, "spec": after}
            answers.append(_seen(await api.call("PUT", f"{path}/w{number}?dryRun=All", changed)))
        comparison.add(
            "change", rules, answers[0], answers[1], (_about(fields, spec, *answers), _about({}, after, *answers))
        )
    for api in apis:
        await api.call("DELETE", f"{CRDS}/{crd['metadata']['name']}")


def _about(fields: Json, spec: Json, one: list[Any], two: list[Any]) -> Json:
    """Return the fields that two answers differ in, and their values."""
    told = {str(each) for each in one} ^ {str(each) for each in two}
    names = {match[1] for each in told for match in re.finditer(r"spec\.(f\d+)", each)}
    return {name: (fields.get(name), spec.get(name)) for name in sorted(names)}


async def compare(server: ControlPlane, seed: int, evaluations: int, broken: int) -> Comparison:
    """Compare both servers."""
    comparison = Comparison()
    async with EmbeddedTarget().open() as one, RealTarget(server).open() as two:
        chance = Chance(random.Random(seed))
        await run((one, two), chance, comparison, evaluations, broken)
    return comparison


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.conformance.fuzz.of_rules", description=__doc__)
    parser.add_argument("--evaluations", type=int, default=10_000, help="of rules, at the least")
    parser.add_argument("--broken", type=int, default=1_000, help="rules that are broken, about")
    parser.add_argument("--seed", type=int, default=None, help="chance by default; printed")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    assets = find_assets()
    if assets is None:
        sys.exit(
            "no kube-apiserver was found: `make -C lab kube` builds one, or KUBEBUILDER_ASSETS names a folder with one"
        )
    print(f"seed {seed}, against kube-apiserver {assets.version}", flush=True)
    with ControlPlane(assets) as server:
        comparison = asyncio.run(compare(server, seed, options.evaluations, options.broken))
    for what, number in sorted(comparison.counts.items()):
        print(f"{number:7,} {what}")
    if comparison.fails():
        sys.exit("the servers differ")


if __name__ == "__main__":
    main()
