"""Run the specification's simple tests: ``make -C lab cel-spec``. The data is other people's, and lies beside the
repository.

What Kubernetes does not enable, or decides otherwise, is in ``not_enabled.py``, each with its reason. It fails if a
test fails that is not listed there, and if nothing fails that is.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

from lab.cel_spec.cases import cases, problem
from lab.cel_spec.not_enabled import reason, unused


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="show what is not enabled, too")
    options = parser.parse_args()
    if not any(options.folder.glob("*.textproto")):
        parser.error(
            f"{options.folder} must contain the specification's tests, and contains no *.textproto. "
            "Set CEL_SPEC to tests/simple/testdata in a clone of github.com/google/cel-spec."
        )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    failed: set[str] = set()
    for case in cases(options.folder):
        found = problem(case)
        why = reason(case) if found else ""
        verdict = "passed" if not found else "not enabled" if why else "failed"
        counts[case.path.split("/")[0]][verdict] += 1
        failed |= {case.path} if found else set()
        if verdict == "failed":
            wrong.append(f"{case.path}: {case.expression}\n    {found}")
        elif found and options.verbose:
            print(f"{case.path}: {why}\n    {case.expression}\n    {found}")
    wrong.extend(f"{pattern} is listed, and nothing of it fails" for pattern in unused(failed))
    print(f"{'file':16} passed  not enabled  failed")
    total: Counter[str] = Counter()
    for file, verdicts in counts.items():
        total += verdicts
        print(f"{file:16} {verdicts['passed']:6}  {verdicts['not enabled']:11}  {verdicts['failed']:6}")
    print(f"{'all':16} {total['passed']:6}  {total['not enabled']:11}  {total['failed']:6}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
