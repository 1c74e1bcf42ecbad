"""Records what a real status controller warns of in the policies of ``recorded_type_checks.jsonl``, and in more.

``make -C lab type-checks-record < POLICIES`` writes the file anew; more policies are read from stdin, a line of JSON
each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.apiserver.core.admission.policies.test_recorded_type_checks import RECORDED
from tests.apiserver.core.admission.policies.type_check_answers import PUBLISHED, answer, shown

from lab.kube.build import KUBE_APISERVER, go_command


def main() -> None:
    """Ask, and write."""
    known = [json.loads(line)["policy"] for line in RECORDED.read_text().splitlines()] if RECORDED.exists() else []
    more = [] if sys.stdin.isatty() else [json.loads(line) for line in sys.stdin if line.strip()]
    policies = [*known, *(policy for policy in more if policy not in known)]
    lines: list[str] = []
    for policy, real in zip(policies, _ask(policies), strict=True):
        record = {"policy": policy, "warnings": shown(real)}
        if (ours := answer(policy)) != record["warnings"]:
            record["ours"] = ours
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    RECORDED.write_text("".join(lines))


def _ask(policies: list[dict[str, Any]]) -> list[list[dict[str, str]]]:
    questions = "".join(json.dumps({"policy": policy, "customs": [PUBLISHED]}) + "\n" for policy in policies)
    go = go_command()
    assert go is not None, "Go is needed"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "type_checks"
        command = [go, "build", "-trimpath", "-o", str(program), "./type_checks"]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
        subprocess.run(command, cwd=KUBE_APISERVER.folder, env=environment, check=True, timeout=3600)
        done = subprocess.run([program], input=questions, capture_output=True, text=True, check=True, timeout=600)
    return [json.loads(line) or [] for line in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
