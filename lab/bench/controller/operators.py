"""The programs that are measured, how each is started, and what builds them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lab.bench.peers.catalogue import BUILD, FLOOR, FOREIGN_PYTHON, OURS

GO_OPERATOR: Final = BUILD / "go/controller"
RUST_OPERATOR: Final = BUILD / "rust/release/kube-rs-operator"
DUTIES: Final = "duties"
"""The anchor with the duties of a runtime; the other one, ``floor``, does the least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One program.

    Attributes:
        name: As rows name it.
        built: What must be there to run it, from the checkout.
        command: How it is started, from the checkout.
        environment: Variables of its own.
        usual: Whether it is measured without being named.
    """

    name: str
    built: Path
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    usual: bool = True


_PROGRAMS: Final = "lab.bench.controller.programs"


def _kopf(name: str, form: str) -> Operator:
    return Operator(
        name=name,
        built=FOREIGN_PYTHON,
        command=(str(FOREIGN_PYTHON), "-m", f"{_PROGRAMS}.kopf_operator"),
        environment={"BENCH_FORM": form},
    )


def _python(name: str, program: str, *, usual: bool = True) -> Operator:
    return Operator(
        name=name,
        built=Path(f"lab/bench/controller/programs/{program}.py"),
        command=(sys.executable, "-m", f"{_PROGRAMS}.{program}"),
        usual=usual,
    )


OPERATORS: Final = (
    _python(OURS, "deltaloop_operator"),
    _python(f"{OURS}-uvloop", "uvloop_operator", usual=False),  # needs uvloop in the environment
    _python(FLOOR, "floor_operator"),
    _python(DUTIES, "duties_operator"),
    Operator(name="controller-runtime", built=GO_OPERATOR, command=(str(GO_OPERATOR),)),
    Operator(
        name="controller-runtime-consistent",  # with its option, experimental, to read its own writes
        built=GO_OPERATOR,
        command=(str(GO_OPERATOR),),
        environment={"BENCH_FORM": "consistent"},
        usual=False,
    ),
    Operator(name="kube-rs", built=RUST_OPERATOR, command=(str(RUST_OPERATOR),)),
    _kopf("kopf", "dict"),
    _kopf("kopf-indexed", "index"),
)


def available(root: Path, wanted: set[str]) -> tuple[list[Operator], list[str]]:
    """Return the operators that can run, and the names of those that were not built.

    Args:
        root: The checkout.
        wanted: Names; empty means the usual ones.

    Raises:
        ValueError: If a name is not known.
    """
    known = {each.name for each in OPERATORS}
    if unknown := wanted - known:
        raise ValueError(f"there is no operator {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    chosen = [each for each in OPERATORS if (each.name in wanted if wanted else each.usual)]
    there = [each for each in chosen if (root / each.built).exists()]
    return there, [each.name for each in chosen if each not in there]
