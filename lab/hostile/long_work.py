"""Requests that make a server compute for a long time, and the time for which other requests wait meanwhile.

``python -m lab.hostile.long_work`` sends each of them to an embedded server and prints one line for each: the answer,
its duration, the longest turn of the loop in CPU time, and the longest wait of other requests, on the clock and in CPU
time of the process. The latter is the wait on a machine that has nothing else to do.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.apiserver.serving import CONFIG_MAPS, CRDS, WIDGETS, Serving, config_map, serving

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_LETTERS = random.Random(1)
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Spec of a custom resource, below the size that always leaves the loop.
_SPEC: dict[str, Any] = {
    "numbers": list(range(3000)),
    "map": {f"k{number}": [number] * 3 for number in range(300)},
    "few": list(range(40)),
    "names": [f"n{number}" for number in range(1200)],
    "random": "".join(_LETTERS.choices("ab", k=12_000)),
}


@dataclass(frozen=True)
class Attack:
    """A custom resource, its schema, and an expression of a policy."""

    name: str
    expression: str = ""
    schema: dict[str, Any] = field(default_factory=lambda: _OPEN)
    spec: Any = field(default_factory=lambda: _SPEC)


def _rule(name: str, expression: str, **spec: Any) -> Attack:
    return Attack(name, expression, spec=spec or _SPEC)


def _doubled(what: str, times: int) -> str:
    return "[[1]]" + f".map(l, {what})" * times + ".size() >= 0"


_WORDS = [f"w{number:04d}" for number in range(1500)]
_ITEM = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 500}}}


def attacks() -> Iterator[Attack]:
    """Yield the attacks: expressions first, then schemas."""
    o = "object.spec"
    yield _rule("deep equality", f"{o}.numbers.all(i, {o}.map == {o}.map)")
    yield _rule("find", f"{o}.random.find('(a|b)*a(a|b){{200}}c') == ''")
    yield _rule("find all", f"{o}.few.all(n, {o}.random.findAll('(ab)*c|a').size() >= 0)")
    yield _rule("flatten", f"lists.range(2000).map(i, {o}.numbers).flatten().size() >= 0")
    yield _rule("repetitions", f"{o}.random.matches('^((a?){{0,30}}){{0,33}}b') || true")
    yield _rule("doubled lists", _doubled("l+l+l+l+l+l+l+l", 8))
    yield _rule("doubled trees", _doubled("[l,l,l,l,l,l,l,l]", 7).replace(".size() >= 0", ".all(x, x == x)"))
    yield _rule("format", f"{o}.numbers.all(i, '%s'.format([{o}.map]) != '')")
    yield _rule("replace", f"{o}.random.replace('', {o}.random) != ''")
    yield _rule("addresses", f"{o}.few.all(i, {o}.few.all(j, !isIP({o}.ip)))", few=list(range(40)), ip="1:" * 15_000)
    yield _rule("URLs", f"{o}.few.all(i, isURL({o}.url))", few=list(range(40)), url="http://h/" + "a%41" * 10_000)
    yield _rule("sets", f"sets.contains({o}.names, {o}.names.map(n, n + 'x')) || true")
    yield _rule("in", f"{o}.names.all(n, {o}.names.all(m, n in {o}.names))")
    yield _rule("public cost", f"{o}.few.all(a, {o}.few.all(b, {o}.few.all(c, {o}.few.all(d, a+b+c+d >= 0))))")
    yield _rule(
        "errors in nested loops", f"{o}.few.map(a, {o}.few.map(b, {o}.few.map(c, {o}.few.map(d, {o}.x)))) == []"
    )
    yield _rule("errors in operands", f"{o}.x" + " + 'a'" * 60 + " != ''")
    yield _rule("last index", f"{o}.numbers.all(i, {o}.random.lastIndexOf({o}.random.substring(6000) + 'c') < 0)")
    yield _rule("sort", f"lists.range(700).map(i, {o}.random + string(i % 2)).sort().size() > 0")
    yield _rule("quantities", f"{o}.few.all(i, !isQuantity({o}.q))", few=list(range(40)), q="0" * 990 + "x")
    yield _rule("doubles", f"double({o}.q) > 0.0 || true", q="1" * 60_000 + "x")
    texts = {"type": "array", "items": {"type": "string", "pattern": "(x?){900}y"}}
    yield Attack("pattern at the end", schema=texts, spec=["abcdef"] * 6000)
    texts = {"type": "array", "items": {"type": "string", "pattern": "(a|b)*a(a|b){300}c"}}
    yield Attack("pattern with many states", schema=texts, spec=[_SPEC["random"]] * 4)
    texts = {"type": "array", "items": {"type": "string", "pattern": "|".join(_WORDS)}}
    yield Attack("pattern of words", schema=texts, spec=["zz"] * 6000)
    texts = {
        "type": "array",
        "items": {"type": "string", "pattern": "(?i)" + "[\\pL\\pN]" * 20 + "|" + "(?:a{1,30}){1,33}"},
    }
    yield Attack("pattern of classes", schema=texts, spec=["\u00e4b" * 20] * 500)
    for form, value in (
        ("duration", "1" * 50_000),
        ("email", "\t" * 50_000 + ")"),
        ("uri", "http://h/" + "%41" * 16_000),
    ):
        yield Attack(f"format {form}", schema={"type": "string", "format": form}, spec=value)
    numbers = {"type": "array", "items": {"type": "integer", "enum": list(range(4000))}}
    yield Attack("enum", schema=numbers, spec=[-1] * 15_000)
    objects = {"type": "array", "items": {"type": "object", "required": [f"r{number}" for number in range(3000)]}}
    yield Attack("required", schema=objects, spec=[{}] * 15_000)
    fields = {f"p{number}": {**_ITEM, "default": {}} for number in range(60)}
    objects = {"type": "array", "items": {"type": "object", "properties": fields}}
    yield Attack("defaults", schema=objects, spec=[{}] * 15_000)


def _crd(schema: dict[str, Any]) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"spec": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}],
        },
    }


def _policy(expression: str) -> dict[str, Any]:
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}],
        },
    }


_BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "p"},
    "spec": {"policyName": "p", "validationActions": ["Deny"]},
}


@dataclass
class Waited:
    """The longest turn of the loop, in CPU time, and the longest wait of another request, also in CPU time."""

    turn: float = 0.0
    computed: float = 0.0
    request: float = 0.0


@asynccontextmanager
async def others(s: Serving) -> AsyncGenerator[Waited]:
    """Send small requests until the block ends."""
    waited = Waited()

    async def read() -> None:
        while True:
            began, computed = time.perf_counter(), time.process_time()
            await s.call.get(f"{CONFIG_MAPS}/other")
            waited.request = max(waited.request, time.perf_counter() - began)
            waited.computed = max(waited.computed, time.process_time() - computed)

    async def turn() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.002)
            waited.turn = max(waited.turn, time.thread_time() - before)

    tasks = [asyncio.create_task(read()), asyncio.create_task(turn())]
    try:
        yield waited
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def carried_out(s: Serving, attack: Attack) -> str:
    """Send an attack; return the codes of the answers and the beginning of the last message."""
    made = [await s.call.post(CRDS, _crd(attack.schema))]
    if attack.expression:
        made += [await s.call.post(_POLICIES, _policy(attack.expression)), await s.call.post(_BINDINGS, _BINDING)]
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": attack.spec}
    made.append(await s.call.post(WIDGETS, widget))
    codes = " ".join(str(answer.status) for answer in made)
    return f"{codes} {next((a.text for a in made if a.status > 201), '')[-150:]}"


async def measured(attack: Attack) -> None:
    """Send an attack to a new server and print what it did."""
    async with serving() as s:
        await s.call.created(CONFIG_MAPS, config_map("other", {"n": "1"}))
        async with others(s) as waited:
            await asyncio.sleep(0.3)
            quiet = waited.request
            waited.turn = waited.request = waited.computed = 0.0
            began = time.perf_counter()
            answer = await carried_out(s, attack)
            took = time.perf_counter() - began
        print(
            f"{attack.name:26} {took:7.2f} s, turn {waited.turn * 1000:6.0f} ms, "
            f"others {waited.request * 1000:6.0f} ms, CPU {waited.computed * 1000:5.0f} ms "
            f"(before {quiet * 1000:4.0f}): {answer}",
            flush=True,
        )


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="names of attacks; all by default")
    names = parser.parse_args().name
    for attack in attacks():
        if not names or attack.name in names:
            await measured(attack)


if __name__ == "__main__":
    asyncio.run(_main())
