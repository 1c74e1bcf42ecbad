"""Test the client side on several versions, and write docs/project/versions.md.

    python -m lab.versions 1.33.13 1.37.2

Each version is built if it is not there (``lab.kube.build``). The page gets a column for each version that was tried.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
import traceback
from pathlib import Path

from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneError
from lab.kube.build import assets_of
from lab.versions.cases import CASES, Case, Place, place_of

PAGE = Path(__file__).parents[2] / "docs" / "project" / "versions.md"
BEGIN, END = "<!-- made by: make -C lab versions -->", "<!-- end -->"
_CASE_SECONDS = 300.0


def title(case: Case) -> str:
    """Return what the page calls a case: the first line of its docstring."""
    return (case.__doc__ or "").strip().splitlines()[0].rstrip(".")


async def tried(case: Case, at: Place) -> str:
    """Run one case; return a remark, or ``failed``."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(_CASE_SECONDS):
            remark = await case(at)
    except Exception:  # noqa: BLE001 - the page says so, and the terminal why
        traceback.print_exc()
        remark = "**failed**"
    print(f"  {case.__name__}: {remark or 'as it should'} ({time.monotonic() - began:.1f} s)", flush=True)
    return remark or "yes"


async def try_all(plane: ControlPlane) -> list[str]:
    """Run all cases on one server."""
    async with place_of(plane) as at:
        return [await tried(case, at) for case in CASES]


def table(found: dict[str, list[str]]) -> str:
    """Return the page's table."""
    lines = [f"| | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for number, case in enumerate(CASES):
        lines.append(f"| {title(case)} | {' | '.join(cells[number] for cells in found.values())} |")
    return "\n".join(lines)


def main() -> None:
    """Run from the command line; 1 if a case failed."""
    parser = argparse.ArgumentParser(prog="python -m lab.versions", description=__doc__)
    parser.add_argument("versions", nargs="+", help="of Kubernetes, such as 1.33.13")
    parser.add_argument("--no-page", action="store_true", help="do not write docs/project/versions.md")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    found: dict[str, list[str]] = {}
    for version in arguments.versions:
        try:
            with ControlPlane(assets_of(version), start_timeout=120) as plane:
                print(f"kube-apiserver {version}", flush=True)
                found[version] = asyncio.run(try_all(plane))
        except ControlPlaneError as error:
            sys.exit(str(error))
    if not arguments.no_page:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}")
    print(table(found))
    raise SystemExit(any("**failed**" in cells for cells in found.values()))


if __name__ == "__main__":
    main()
