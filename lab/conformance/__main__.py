"""Run the suite on the embedded server and, where its binaries are, on the real one: ``make -C lab conformance``.

Two columns are printed and ``build/conformance.json`` is written. It fails if a case fails on the real server (the
suite is wrong then), or on the embedded one without being listed in ``differences.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from deltaloop.testing.servers.control_plane import ControlPlaneError, find_assets

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "conformance.json"
SECONDS = 1800.0
COLUMNS = ("passed", "failed", "skipped")


def run(server: str, arguments: list[str]) -> tuple[int, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="deltaloop-conformance-") as folder:
        results = Path(folder) / "results.json"
        environment = {
            **os.environ,
            "NIGHTLY": "1",
            "DELTALOOP_CONFORMANCE": server,
            "DELTALOOP_CONFORMANCE_RESULTS": str(results),
        }
        command = [sys.executable, "-m", "pytest", "-q", "tests/conformance", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, timeout=SECONDS, check=False)
        return done.returncode, json.loads(results.read_text()) if results.exists() else {}


def main() -> None:
    try:
        real_is_there = find_assets() is not None
    except ControlPlaneError as error:
        sys.exit(str(error))
    servers = ["embedded", "real"] if real_is_there else ["embedded"]
    found = {server: run(server, sys.argv[1:]) for server in servers}
    listed = {server: int(result.pop("listed", 0)) for server, (_, result) in found.items()}
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps({server: result for server, (_, result) in found.items()}, indent=2) + "\n")
    print(f"\n{'':10}{''.join(f'{server:>12}' for server in servers)}")
    for name in COLUMNS:
        print(f"{name:10}{''.join(f'{found[server][1].get(name, 0):>12}' for server in servers)}")
    if listed["embedded"]:
        print(f"docs/reference/embedded-server.md lists {listed['embedded']} failures of the embedded server")
    if real_is_there:
        print(f"the real server is kube-apiserver {found['real'][1].get('version', '')}")
    else:
        print(
            "no kube-apiserver was found: `make -C lab kube` builds one, or KUBEBUILDER_ASSETS names a folder with one"
        )
    codes = [code for code, _ in found.values()]
    if real_is_there:
        # The real server's launcher, and the pytest fixtures on it.
        command = [sys.executable, "-m", "pytest", "-q", "lab/kube"]
        environment = {**os.environ, "DELTALOOP_CONFORMANCE": "real"}
        codes.append(subprocess.run(command, cwd=ROOT, env=environment, timeout=SECONDS, check=False).returncode)
    # kubectl, every version that is here, on the same servers.
    script = [sys.executable, "-m", "tests.conformance.kubectl_script"]
    codes.append(subprocess.run(script, cwd=ROOT, check=False).returncode)
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
