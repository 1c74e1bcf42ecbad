"""Runs the machine of the whole pipeline on what stands; seeded bugs go through it in lab/mutants."""

from __future__ import annotations

from deltaloop.api.kinds import POD
from deltaloop.cache.informer import Informer
from tests.cache.machines import run_machine
from tests.cache.machines_pipeline import make_machine


def test_the_pipeline_agrees_with_the_model() -> None:
    run_machine(make_machine(lambda source, options: Informer(source, POD, options=options)))
