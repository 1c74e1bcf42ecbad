"""Raise or lower the version of Kubernetes: ``make -C lab kubernetes VERSION=1.x.y``.

It writes the one number, the Go modules that follow from it, builds a real server of that version, and has everything
made anew that is made from published types or from what such a server answers. What it leaves is to be read with ``git
diff``; the page ``internals/raising-kubernetes.md`` says how to go on.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tools.builtin_tables.generate import MissingSourceError, schemas_file
from tools.kubernetes.go_modules import parts_of, raise_module

from deltaloop.api.kubernetes_version import KUBERNETES

ROOT: Final = Path(__file__).resolve().parents[2]
# Where the number itself is written.
NUMBER: Final = (
    "src/deltaloop/api/kubernetes_version.py",
    "docs/reference/embedded-server.md",
    "docs/project/versions.md",
)
MODULES: Final = ("lab/kube/apiserver", "lab/world/controllers", "tools/protobuf_table", "lab/interop/go_client")
# Each reads what those before it have written.
STEPS: Final = (
    ("build the real server", "lab.kube.build"),
    ("what it serves", "tools.builtin_tables.observe"),
    ("fields in protobuf", "tools.protobuf_table.generate"),
    ("what the types say", "tools.builtin_tables.tags"),
    ("tables of kinds and types", "tools.builtin_tables.generate"),
    ("types for type checkers", "tools.kind_types.generate"),
    ("first objects", "tools.first_objects.observe"),
    ("facts about built-in kinds", "tests.conformance.builtin_facts"),
    ("facts about CRDs", "tests.conformance.crd_facts"),
    ("facts about values", "tests.conformance.value_facts"),
    ("facts about embedded objects", "tests.conformance.embedded_facts"),
    ("facts about columns", "tests.conformance.column_facts"),
    ("answers to our own corpus", "lab.corpus", "--record"),
)


def write_number(version: str) -> None:
    """Write the version where it is said."""
    for name in NUMBER:
        path = ROOT / name
        text = path.read_text()
        changed = re.sub(rf"(?<![\d.]){re.escape(KUBERNETES)}(?![\d.]*\d)", version, text)
        if changed == text and version != KUBERNETES:
            raise ValueError(f"{name} does not say {KUBERNETES}")
        path.write_text(changed)


def main() -> None:
    """Do it all, and say how long each step took."""
    parser = argparse.ArgumentParser(prog="python -m tools.kubernetes", description=__doc__)
    parser.add_argument("version", help="1.x.y: one that k8s.io/kubernetes and k8s.io/api are published in")
    version: str = parser.parse_args().version
    if not re.fullmatch(r"1\.\d+\.\d+", version):
        parser.error(f"{version} is no version such as 1.2.3")
    try:
        schemas_file(version.rpartition(".")[0])
    except MissingSourceError as error:
        sys.exit(str(error))
    try:
        parts = parts_of(version, ROOT / MODULES[0])
        for name in MODULES:
            raise_module(ROOT / name, version, parts)
    except (subprocess.SubprocessError, OSError) as error:
        sys.exit(
            f"{error}: the module proxy may not have all parts of {version}; `git restore .` undoes what was written"
        )
    write_number(version)
    for title, *command in STEPS:
        print(f"== {title}", flush=True)
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed; what was written stays, and the same command begins anew")
        print(f"== {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
