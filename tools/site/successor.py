"""Builds the site with Zensical, the successor of mkdocs and its theme, from the same ``mkdocs.yml``, and checks it.

It builds into the same folder as mkdocs does, so that is put aside and back again.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tools.site import links

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
OTHER = ROOT / "build" / "site-zensical"


def main() -> int:
    """Build and check; return the exit code."""
    aside = SITE.with_name("site-aside")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(OTHER, ignore_errors=True)
    SITE.rename(aside)
    try:
        command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
        built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if built.returncode:
            print(built.stdout, built.stderr, sep="\n")
            return built.returncode
        SITE.rename(OTHER)
    finally:
        shutil.rmtree(SITE, ignore_errors=True)
        aside.rename(SITE)
    wrong, followed, _ = links.check(OTHER)
    print("\n".join([*wrong, f"{OTHER.relative_to(ROOT)}: {followed} links followed, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
