"""Install deltaloop's checkout with locked requirements: ``python -m tools.install cli server --group dev``.

Every requirement comes from ``constraints.txt`` and has one of its hashes. pip does not accept a hash for a checkout,
so deltaloop itself follows in a second step, without requirements. This module runs in an environment that has nothing
but pip.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
LOCK: Final = ROOT / "constraints.txt"


def requirements(extras: Iterable[str]) -> list[str]:
    """Return the requirements of the package with some extras, and of its build."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = read["project"]
    optional = project["optional-dependencies"]
    chosen = [*project["dependencies"], *(each for extra in extras for each in optional[extra])]
    return list(dict.fromkeys([*chosen, *read["build-system"]["requires"]]))


def install(python: str | Path, extras: Sequence[str], groups: Sequence[str] = (), *, checkout: bool = True) -> None:
    """Install the requirements of extras and dependency groups, and the checkout.

    Raises:
        subprocess.CalledProcessError: pip failed, for example because of another hash.
    """
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "requirements.txt"
        file.write_text("\n".join(requirements(extras)))
        named = [word for group in groups for word in ("--group", f"{ROOT / 'pyproject.toml'}:{group}")]
        locked = ["--require-hashes", "--constraint", str(LOCK), "--requirement", str(file), *named]
        subprocess.run([*pip, *locked], check=True)
    if checkout:
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)


def main() -> None:
    """Install into the environment of this interpreter."""
    parser = argparse.ArgumentParser(prog="python -m tools.install", description=__doc__)
    parser.add_argument("extras", nargs="*", help="extras of the package")
    parser.add_argument("--group", action="append", default=[], help="a dependency group of pyproject.toml")
    asked = parser.parse_args()
    try:
        install(sys.executable, asked.extras, asked.group)
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)


if __name__ == "__main__":
    main()
