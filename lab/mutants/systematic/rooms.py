"""The rooms, and the tests that are asked whether they notice a mistake in one."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "deltaloop"
PACKAGE = "deltaloop"

# The room's own tests first; those of the rooms that stand on it are asked with --wide.
OWN: dict[str, tuple[str, ...]] = {
    "_internal": ("tests/_internal", "tests/workqueue"),
    "workqueue": ("tests/workqueue",),
    "leaderelection": ("tests/leaderelection",),
    "events": ("tests/events",),
    "cache": ("tests/cache",),
    "client": ("tests/client",),
    "runtime": ("tests/runtime",),
    "blocking": ("tests/blocking",),
}
WIDE: dict[str, tuple[str, ...]] = {
    "_internal": ("tests/cache", "tests/client/core", "tests/events"),
    "workqueue": ("tests/runtime", "tests/blocking", "tests/hostile"),
    "leaderelection": ("tests/runtime", "tests/cli", "tests/testing"),
    "events": ("tests/runtime", "tests/metrics"),
    "cache": ("tests/runtime", "lab/mutants/test_mutants.py", "tests/blocking", "tests/hostile", "tests/metrics"),
    "client": ("tests/runtime", "tests/cache", "tests/apiserver", "tests/hostile", "tests/cli", "tests/metrics"),
    "runtime": ("tests/cli", "tests/testing", "tests/examples", "tests/metrics", "tests/hostile"),
    "blocking": ("tests/testing", "tests/metrics"),
}


def modules(room: str) -> list[str]:
    """Files below the package, cores first."""
    found = [path.relative_to(SOURCE).as_posix() for path in sorted((SOURCE / room).rglob("*.py"))]
    return sorted((each for each in found if not each.endswith("__init__.py")), key=lambda each: "/core/" not in each)
