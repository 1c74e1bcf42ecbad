"""Run the checks of the OpenSSF scorecard that need no forge: ``make -C lab trust``.

``python -m lab.trust NAME`` runs one check and lists its problems. A missing step of the owner is no failure.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.install import LOCK
from tools.release.checkout import ROOT, git

from lab.trust import checks
from lab.trust.checks import Result

HOURS: Final = Path(__file__).with_name("fuzzing.tsv")
FORGE: Final = ("Branch-Protection", "Code-Review", "Contributors", "Dependency-Update-Tool", "Packaging", "Webhooks")


def fuzzed(seconds: float, *, record: bool) -> Result:
    """Require that a short run of the fuzzers finds nothing; the record contains the hours of all runs."""
    environment = {**os.environ, "NIGHTLY": "1", "FUZZ_WEBHOOKS": str(int(seconds * 20))}
    seed = str(random.SystemRandom().randrange(2**32))
    # Both servers evaluate about 100 rules in a second, and reject 4 broken rules.
    amount = ["--evaluations", str(int(seconds * 100)), "--broken", str(int(seconds * 4))]
    fuzzers = {
        "webhooks": ["pytest", "--quiet", "--numprocesses", "0", "tests/webhooks/test_fuzz.py"],
        "apiserver": ["lab.conformance.fuzz", "--seconds", str(seconds)],
        f"rules, seed {seed}": ["lab.conformance.fuzz.of_rules", "--seed", seed, *amount],
    }
    found: list[str] = []
    for name, words in fuzzers.items():
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode and "no kube-apiserver was found" not in done.stdout + done.stderr:
            found.append(f"{name}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        [commit] = git("rev-parse", "--short", "HEAD")
        line = [f"{datetime.now(UTC):%Y-%m-%d}", commit, name, f"{time.monotonic() - start:.0f}", f"{cpu:.0f}"]
        if record:
            with HOURS.open("a") as file:
                file.write("\t".join([*line, "failed" if done.returncode else "passed"]) + "\n")
    rows = [line.split("\t") for line in HOURS.read_text().splitlines()[1:]]
    hours = sum(float(row[4]) for row in rows) / 3600
    failures = sum(row[5] != "passed" for row in rows)
    return found, f"{hours:.2f} hours of CPU in {len(rows)} recorded runs, {failures} of which found a difference"


def vulnerabilities() -> Result:
    """Require that pip-audit, if it is installed and asked for, knows no vulnerability of the locked packages."""
    audit = shutil.which("pip-audit")
    if audit is None:
        return [], "not checked: pip-audit is not installed, and no package contains a current database"
    command = [audit, "--disable-pip", "--require-hashes", "--requirement", str(LOCK)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    return done.stdout.splitlines()[2:] if done.returncode else [], "pip-audit on constraints.txt"


CHECKS: Final[Mapping[str, tuple[str, Callable[[], Result]]]] = {
    "binaries": ("Binary-Artifacts", checks.binaries),
    "tests": ("CI-Tests", checks.tests_in_ci),
    "workflows": ("Dangerous-Workflow", checks.dangerous_workflows),
    "licenses": ("License", checks.licenses),
    "maintained": ("Maintained", checks.maintained),
    "pinned": ("Pinned-Dependencies", checks.pinned),
    "sast": ("SAST", checks.static_analysis),
    "policy": ("Security-Policy", checks.policy),
    "signed": ("Signed-Releases", checks.signed_releases),
    "permissions": ("Token-Permissions", checks.permissions),
    "vulnerabilities": ("Vulnerabilities", vulnerabilities),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.trust", description=__doc__)
    parser.add_argument("check", nargs="?", choices=[*CHECKS, "fuzzing"], help="only this check")
    parser.add_argument("--fuzz-seconds", type=float, default=20.0, help="duration of each fuzzer")
    parser.add_argument("--record", action="store_true", help="add the runs of the fuzzers to lab/trust/fuzzing.tsv")
    asked = parser.parse_args()
    chosen = {**CHECKS, "fuzzing": ("Fuzzing", lambda: fuzzed(asked.fuzz_seconds, record=asked.record))}
    failed = False
    print("| check | result | evidence | command |\n| --- | --- | --- | --- |")
    for name, (title, check) in chosen.items():
        if asked.check not in (None, name):
            continue
        problems, summary = check()
        owner = bool(problems) and all(each.startswith("the owner must") for each in problems)
        failed |= bool(problems) and not owner
        result = "owner" if owner else "fails" if problems else "open" if "not checked" in summary else "passes"
        evidence = re.sub(r"\s+", " ", "; ".join([*problems[:3], summary]))
        print(f"| {title} | {result} | {evidence} | `python -m lab.trust {name}` |", flush=True)
        if asked.check:
            print("\n".join(problems))
    if asked.check is None:
        print("\n".join(f"| {title} | needs a forge | | |" for title in FORGE))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
