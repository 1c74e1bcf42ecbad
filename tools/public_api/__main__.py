"""Write the signatures of the public API to ``signatures.txt``; ``--check`` fails if the file is out of date."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Final

from tools.public_api.describe import api

FILE: Final = Path(__file__).with_name("signatures.txt")
MOST: Final = 600
"""Lines that the file may have: the public API has to stay readable."""


def main() -> None:
    """Write or check the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_api", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the file is out of date")
    only_checks: bool = parser.parse_args().check
    was = FILE.read_text().splitlines() if FILE.exists() else []
    now = api()
    if len(now) > MOST:
        sys.exit(f"The public API must have at most {MOST} names, got {len(now)}. Make some of them private.")
    for line in difflib.unified_diff(was, now, "recorded", "now", n=0, lineterm=""):
        print(line)
    if only_checks and was != now:
        sys.exit("The public API differs from tools/public_api/signatures.txt. Review it and run `make generate`.")
    FILE.write_text("\n".join(now) + "\n")
    print(f"public API: {len(now)} names")


if __name__ == "__main__":
    main()
