"""Visits every state of two candidates with one clock rate: ``python -m tests.leaderelection.core.explore_all``."""

from __future__ import annotations

import sys

from tests.leaderelection.core.explorer import explore
from tests.leaderelection.core.test_explorer import PLAIN


def main() -> int:
    result = explore(PLAIN, limit=2_000_000)
    print(f"{result.states} states, {result.steps} steps deep, {'all' if result.complete else 'not all'} visited")
    print("\n".join(result.violation) or "never two leaders")
    return 1 if result.violation else 0


if __name__ == "__main__":
    sys.exit(main())
