"""Print the counts beside the committed ones: ``python -m tests.counts [--json | --write]``."""

from __future__ import annotations

import argparse
import json
import os
import sys

from tests.counts.committed import VERSION, committed, write


def main() -> None:
    """Measure, and print or write the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the counts only, as JSON")
    parser.add_argument("--write", action="store_true", help="write the counts into the committed file")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # it decides the order of sets, and so the number of calls
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})
    from tests.counts.counting import measure

    found = measure()
    if arguments.json:
        print(json.dumps(found))
        return
    before = committed()
    for name, counts in found.items():
        for what, count in counts.items():
            print(f"{name:<18} {what:<8} {count:>10.1f} committed {before.get(name, {}).get(what, 0.0):>10.1f}")
    if arguments.write:
        write(found)
        print(f"written for Python {VERSION}")


if __name__ == "__main__":
    main()
