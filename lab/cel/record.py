"""Records what cel-go answers to the expressions of ``recorded.jsonl``, and to more of them, a line each, from stdin.

``make -C lab cel-record < EXPRESSIONS`` writes the file anew. Go's maps have no order. Where an answer depends on it,
it is asked for so often that each order has come: the answer that is ours stands in the file, or none, if it is not
there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.cel.answers import answer

from lab.cel.asking_cel_go import ask, build
from lab.cel.fuzz import differences

# Of two orders, one stays unseen in one run of two thousand million.
TIMES = 32
RECORDED = Path(__file__).parents[2] / "tests" / "cel" / "recorded.jsonl"


def main() -> None:
    """Ask, and write."""
    known = [str(json.loads(line)["expression"]) for line in RECORDED.read_text().splitlines()]
    more = [] if sys.stdin.isatty() else [line for line in sys.stdin.read().split("\n") if line]
    expressions = list(dict.fromkeys([*known, *more]))
    with tempfile.TemporaryDirectory() as folder:
        answers = [*ask(build(Path(folder)), expressions * TIMES)]
    lines: list[str] = []
    for place, expression in enumerate(expressions):
        ours = answer(expression)
        real, *others = answers[place :: len(expressions)]
        if any(other != real for other in others):
            same = next((each for each in (real, *others) if not [*differences(each, ours)]), None)
            if same is None:
                print("never the same, and never ours:", expression)
                continue
            real = same
        record = {"expression": expression, **real}
        if [*differences(real, ours)]:
            record["ours"] = ours
        elif "value" in real:
            record["value"] = ours["value"]  # the last digit of a double
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    RECORDED.write_text("".join(lines))


if __name__ == "__main__":
    main()
