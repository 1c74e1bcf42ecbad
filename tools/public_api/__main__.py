"""Holds the public API to what was recorded: ``make check`` runs it with ``--check``, ``make generate`` records anew.

The record is what the newest version in ``CHANGELOG.md`` has or, if that one is prepared, will have. Each difference
from it must be named in a code span below ``## Unreleased``: a name as `name`, a member of a class as `Class.member`.
"""

from __future__ import annotations

import argparse
import sys

from tools.public_api import record
from tools.public_api.describe import api
from tools.release.checkout import ROOT, version
from tools.release.checks import unreleased


def main() -> None:
    """Check or record."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_api", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a change is not named")
    only_checks: bool = parser.parse_args().check
    now = api()
    was = record.read()
    found = record.changes(was.lines, now)
    for each in found:
        print(each)
    if not only_checks:
        record.write(record.Record(version=version(), lines=now))
        print(f"recorded {len(now)} names for {version()}")
        return
    left = record.unnamed(found, unreleased((ROOT / "CHANGELOG.md").read_text()))
    if left:
        words = ", ".join(f"`{each.word}`" for each in left)
        sys.exit(
            f"The public API differs from that of {was.version}. Name below `## Unreleased` in CHANGELOG.md: {words}"
        )
    print(f"Public API: {len(now)} names, {len(found)} changes since {was.version}, each in the change log")


if __name__ == "__main__":
    main()
