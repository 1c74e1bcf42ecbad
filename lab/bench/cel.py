"""CPU time of an evaluation, beside the libraries for the same language that are on PyPI: ``make -C lab bench-cel``.

All take turns in one process, with decoded JSON and a program that is compiled already. Each figure is the median
of the rounds, each ratio that of the rounds' ratios, with the interval that nine in ten of resampled medians fall into.
Ours is measured with costs counted, as kube-apiserver counts them, and without; the others count none.
``--bound 0.5`` fails if ours, with costs counted, takes more than that part of the quickest other library's time for a
simple rule, or for one over a list.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from deltaloop import cel
from deltaloop.cel.kubernetes import PER_CALL_LIMIT, kubernetes_environment

ROUNDS: Final = 25
SECONDS: Final = 0.05
OURS: Final = "deltaloop.cel, costs counted"
RULES: Final = {
    "a simple rule": "self.replicas <= self.maxReplicas",
    "a list of 100": "self.items.all(i, i.size() < 10)",
    "pairs of 10": "self.few.all(a, self.few.exists_one(b, a.name == b.name))",
    "a pattern": "self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && self.name.size() < 64",
}
BOUNDED: Final = ("a simple rule", "a list of 100")
OBJECT: Final = {
    "replicas": 3,
    "maxReplicas": 5,
    "name": "some-name-of-an-object",
    "items": [f"item{number}" for number in range(100)],
    "few": [{"name": f"n{number}", "port": number} for number in range(10)],
}

Evaluate = Callable[[], object]


def libraries(rule: str, value: dict[str, Any]) -> Iterator[tuple[str, Evaluate]]:
    """Yield each library that is installed, with what evaluates a rule once."""
    bindings = {"self": value}
    program = kubernetes_environment().with_variables({"self": cel.DYN}).compile(rule)
    yield OURS, lambda: program.evaluate(bindings, budget=PER_CALL_LIMIT)
    yield "deltaloop.cel", lambda: program.evaluate(bindings)
    google: Any = _installed("cel_expr_python.cel")
    if google is not None:
        checked = google.NewEnv(variables={"self": google.Type.DYN}).compile(rule)
        yield "cel-expr-python", lambda: checked.eval(data=bindings).value()
    rust: Any = _installed("cel")
    if rust is not None:
        compiled = rust.compile(rule)
        yield "common-expression-language", lambda: compiled.execute(bindings)


def _installed(name: str) -> object | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def microseconds(evaluate: Evaluate, times: int) -> float:
    """Return the CPU time of one evaluation."""
    began = time.process_time()
    for _ in range(times):
        evaluate()
    return (time.process_time() - began) / times * 1e6


def measure(rule: str) -> dict[str, list[float]]:
    """Return what each library took in each round, in microseconds."""
    found = dict(libraries(rule, json.loads(json.dumps(OBJECT))))
    times: dict[str, int] = {}
    for name, evaluate in found.items():
        if evaluate() is not True:
            raise RuntimeError(f"{name} does not find {rule} true")
        times[name] = max(5, int(SECONDS * 1e6 / max(microseconds(evaluate, 20), 0.1)))
    rounds = [{name: microseconds(each, times[name]) for name, each in found.items()} for _ in range(ROUNDS)]
    return {name: [each[name] for each in rounds] for name in found}


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return what nine in ten medians of resampled values lie between."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return medians[100], medians[-101]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bound", type=float, default=None, help="of ours to the quickest other library")
    bound = parser.parse_args().bound
    figures = {what: measure(rule) for what, rule in RULES.items()}
    names = list(next(iter(figures.values())))
    others = [name for name in names if not name.startswith("deltaloop")]
    if not others:
        sys.exit("no other library is installed: make -C lab bench-cel")
    print(f"| µs | {' | '.join(RULES)} |\n| --- |{' --- |' * len(RULES)}")
    for name in names:
        print(f"| {name} | {' | '.join(f'{statistics.median(each[name]):.2f}' for each in figures.values())} |")
    ratios: dict[str, list[float]] = {}
    for what, each in figures.items():
        quickest = min(others, key=lambda name, each=each: statistics.median(each[name]))  # type: ignore[misc]
        ratios[what] = [ours / theirs for ours, theirs in zip(each[OURS], each[quickest], strict=True)]
    shown = ["{:.2f} ({:.2f} to {:.2f})".format(statistics.median(each), *interval(each)) for each in ratios.values()]
    print(f"| {OURS}, to the quickest other | {' | '.join(shown)} |")
    if bound is not None and max(statistics.median(ratios[what]) for what in BOUNDED) > bound:
        sys.exit(f"more than {bound}")


if __name__ == "__main__":
    main()
