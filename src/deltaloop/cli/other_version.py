"""Worker of ``deltaloop plan --against``: plans another version of a program in a separate process.

python -m deltaloop.cli.other_version MODULE SNAPSHOT RESULT [NAMESPACE]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import notes_of
from deltaloop.cli.load_controllers import load_declared, target_name
from deltaloop.planning.comparing import other_outcome
from deltaloop.planning.plans import file_snapshot, version_of
from deltaloop.planning.run import run_plan


def work(target: str, snapshot: Path, result: Path, namespace: str | None) -> None:
    """Plan a module on a snapshot, and write the result, which contains Secrets, to a private file."""
    module, controllers, webhooks = load_declared(target)
    version = version_of(target_name(target), module, controllers, webhooks, namespace=namespace)
    outcome = other_outcome(run_plan(version, file_snapshot(snapshot, version), keep_objects=True))
    descriptor = os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(outcome))


def main() -> None:
    """Plan the module that the arguments specify."""
    target, snapshot, result, *namespace = sys.argv[1:]
    try:
        work(target, Path(snapshot), Path(result), namespace[0] if namespace else None)
    except DeltaloopError as error:
        sys.exit("; ".join([str(error), *notes_of(error)]))


if __name__ == "__main__":
    main()
