"""Records what cel-go answers to the expressions of ``recorded.jsonl``, and to more of them, a line each, from stdin.

``make cel-record < EXPRESSIONS`` writes the file anew. What cel-go answers otherwise each time, since its maps have no
order, is left out.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.cel.answers import answer
from tests.cel.asking_cel_go import ask, build
from tests.cel.fuzz import differences

RECORDED = Path(__file__).with_name("recorded.jsonl")


def main() -> None:
    """Ask, and write."""
    known = [str(json.loads(line)["expression"]) for line in RECORDED.read_text().splitlines()]
    more = [] if sys.stdin.isatty() else [line for line in sys.stdin.read().split("\n") if line]
    expressions = list(dict.fromkeys([*known, *more]))
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        first, *others = ([*ask(program, expressions)] for _ in range(4))
    lines: list[str] = []
    for place, (expression, real) in enumerate(zip(expressions, first, strict=True)):
        if any(other[place] != real for other in others):
            print("never the same:", expression)
            continue
        ours = answer(expression)
        record = {"expression": expression, **real}
        if [*differences(real, ours)]:
            record["ours"] = ours
        elif "value" in real:
            record["value"] = ours["value"]  # the last digit of a double
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    RECORDED.write_text("".join(lines))


if __name__ == "__main__":
    main()
