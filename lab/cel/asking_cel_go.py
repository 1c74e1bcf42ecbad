"""What cel-go answers in kube-apiserver's environment: a Go program that is built once, and asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from tests.cel.answers import BINDINGS

from lab.patterns.asking_go import GO

PROGRAM = Path(__file__).with_name("cel_go")


def build(folder: Path) -> Path:
    """Build the program; its modules come from Go's cache or from the network."""
    program = folder / "cel_go"
    subprocess.run([GO, "build", "-o", str(program), "."], cwd=PROGRAM, check=True, timeout=600)
    return program


def ask(program: Path, expressions: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield what cel-go answers to each expression, as ``answers.answer`` has it."""
    lines = "".join(json.dumps({"expression": each, "bindings": BINDINGS}) + "\n" for each in expressions)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True, timeout=600)
    for line in done.stdout.splitlines():
        told: dict[str, object] = json.loads(line)
        if "program" in told:
            told = {"program": told["program"]}
        if "estimate" in told:
            told["estimate"] = [int(each) for each in cast("list[str]", told["estimate"])]
        if not {"value", "error", "faults", "program"} & told.keys():
            told["shown"] = None  # no JSON has it
        yield told
