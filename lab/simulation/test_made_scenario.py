"""Kinds that were not written for this: each is created, changed and deleted as a made scenario does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples.database.controller import Database
from examples.database.controller import reconcile as database

from deltaloop.crds import generate_crd
from deltaloop.errors import BrokenReferenceError
from deltaloop.simulation import Simulation, parse_schedule
from deltaloop.simulation.made_scenario import made_scenario
from lab.corpus import reading
from lab.simulation.public_kinds import does_nothing

CORPUS = Path(reading.__file__).parent / "own"
(SHAPES,) = (project for project in reading.read_folder(CORPUS) if project.name == "shapes")
CRDS = {sample.object["metadata"]["name"]: sample.object for sample in SHAPES.crds}
"""A dozen definitions with the shapes of public ones."""


@pytest.mark.parametrize("name", CRDS)
def test_generated_scenario_of_kind_succeeds(name: str) -> None:
    run = Simulation(made_scenario([does_nothing], [CRDS[name]])).reference
    assert not run.raised


def test_kind_with_unsatisfied_rule_is_reported() -> None:
    rule = {"rule": "has(self.name) != has(self.text)", "message": "one of name and text"}
    names = {"type": "object", "properties": {"name": {"type": "string"}, "text": {"type": "string"}}}
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": {**names, "x-kubernetes-validations": [rule]}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "brokers.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Broker", "plural": "brokers"},
            "versions": [version],
        },
    }
    with pytest.raises(BrokenReferenceError) as caught:
        _ = Simulation(made_scenario([does_nothing], [crd])).reference
    assert "one of name and text" in caught.value.problem.text


def test_stale_restart_does_not_restore_status_of_deleted_object() -> None:
    simulation = Simulation(made_scenario([database], [generate_crd(Database)]))
    assert simulation.replay(parse_schedule("stale:create:jobs.batch:1:8")) is None
