"""Makes ``rules.jsonl``: CRDs with rules by chance, some broken, and objects: ``python -m lab.corpus.own.rules``.

It is made of what the fuzzer of rules makes (``lab/conformance/fuzz/rules.py``); when that changes, the file stays.
Who makes it anew records the answers anew, too (``make -C lab corpus-record``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.conformance.target import CRDS, Api, EmbeddedTarget, widget_crd

from lab.conformance.fuzz.rules import RULES, Chance, count

FILE = Path(__file__).with_name("rules.jsonl")
GROUP = "rules.example.com"
GOOD, BROKEN, FIELDS, OBJECTS = 10, 40, 3, 6

Part = dict[str, Any]


def _crd(word: str, fields: Part, rules: list[Part]) -> Part:
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec}, RULES: rules}
    crd = widget_crd(GROUP, schema=schema, status=False, scale=False)
    crd["spec"]["names"] = {"plural": f"{word}s", "singular": word, "kind": word.capitalize()}
    crd["metadata"]["name"] = f"{word}s.{GROUP}"
    return crd


async def made(api: Api, chance: Chance) -> AsyncIterator[Part]:
    """Yield CRDs that are taken, with objects, then broken ones."""
    good: list[Part] = []
    while len(good) < GOOD * FIELDS:
        field = chance.with_rules(chance.schema())
        if count(field) and (await api.post(f"{CRDS}?dryRun=All", _crd("one", {"f": field}, []))).status == 201:
            good.append(field)
    for number in range(GOOD):
        fields = {f"f{place}": good[number * FIELDS + place] for place in range(FIELDS)}
        yield _crd(f"ruled{number}", fields, chance.root_rules())
        head = {"apiVersion": f"{GROUP}/v1", "kind": f"Ruled{number}"}
        for place in range(OBJECTS):
            spec = {name: chance.of(field) for name, field in fields.items() if chance.often(0.7)}
            yield {**head, "metadata": {"name": f"w{place}"}, "spec": spec}
    for number in range(BROKEN):
        field = dict(chance.one([each for each in good if RULES in each]))
        field[RULES] = [chance.broken(field[RULES][0]), *field[RULES][1:]]
        yield _crd(f"broken{number}", {"f": field}, [])


async def main(seed: int) -> None:
    async with EmbeddedTarget().open() as api:
        lines = [
            json.dumps({"from": "rules.py", "object": each}, separators=(",", ":"), ensure_ascii=False)
            async for each in made(api, Chance(random.Random(seed)))
        ]
    FILE.write_text("".join(f"{line}\n" for line in lines))
    print(f"{FILE.name}: {len(lines)} lines, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=22)
    asyncio.run(main(parser.parse_args().seed))
