"""Random expressions, held against what cel-go answers: verdict, value, error, cost and estimate.

``make -C lab cel-fuzz`` builds a Go program for that. ``CEL_FLAGS="NUMBER SEED"`` says how many expressions, and which.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from tests.cel.answers import answer
from tests.cel.expressions import some_texts

from lab.cel.asking_cel_go import ask, build

SHOWN = 20


def differences(real: dict[str, object], ours: dict[str, object]) -> Iterator[str]:
    """Yield in what two answers differ."""
    for key in sorted(real.keys() | ours.keys()):
        if key == "shown" or (key == "value" and "shown" in real):
            continue
        if not _same(real.get(key), ours.get(key)):
            yield key


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and math.isclose(cast("float", one), cast("float", other), rel_tol=1e-12)
    if isinstance(one, list) and isinstance(other, list):
        pairs = zip(cast("list[object]", one), cast("list[object]", other), strict=False)
        return len(cast("list[object]", one)) == len(cast("list[object]", other)) and all(
            _same(*pair) for pair in pairs
        )
    return one == other


def main(number: int = 5000, seed: int = 0) -> None:
    """Compare, and say what differs."""
    expressions = list(dict.fromkeys(some_texts(number, seed)))
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for expression, real in zip(expressions, ask(program, expressions), strict=True):
            ours = answer(expression)
            if "internal error" in str(real.get("error")):
                continue  # cel-go failed
            keys = list(differences(real, ours))
            name = f"{'+'.join(keys)}{' of an error' if 'error' in real else ''}"
            counted[name] += 1
            if keys and counted[name] <= SHOWN:
                print(expression)
                for key in keys:
                    print(f"    {key}: cel-go {real.get(key)!r:.200}, ours {ours.get(key)!r:.200}")
    print(len(expressions), dict(counted))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
