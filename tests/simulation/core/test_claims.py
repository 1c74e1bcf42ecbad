"""Who says Ready before what belongs to it is."""

from __future__ import annotations

from typing import Any

from deltaloop.api.resource import Resource
from deltaloop.simulation.core.claims import ReadyClaims, early_claims


def owner(*conditions: dict[str, Any], generation: int = 1) -> Resource:
    metadata = {"name": "a", "namespace": "default", "uid": "u1", "generation": generation}
    return Resource.from_dict(
        {"apiVersion": "x.dev/v1", "kind": "A", "metadata": metadata, "status": {"conditions": [*conditions]}}
    )


def ready(status: str = "True", **more: object) -> dict[str, Any]:
    return {"type": "Ready", "status": status, **more}


def pod(name: str, phase: str, *, of: str = "u1") -> Resource:
    reference = {"apiVersion": "x.dev/v1", "kind": "A", "name": "a", "uid": of}
    metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [reference]}
    status = {"phase": phase, "conditions": [ready("True" if phase == "Running" else "False")]}
    return Resource.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})


def test_ready_claim_counts_for_current_generation() -> None:
    claims = ReadyClaims()
    assert not claims.turns(owner())
    assert not claims.turns(owner(ready("False")))
    assert not claims.turns(owner(ready(observedGeneration=1), generation=2))
    assert claims.turns(owner(ready(observedGeneration=2), generation=2))
    assert not claims.turns(owner(ready())), "it was said before"
    assert not claims.turns(owner(ready("False")))
    assert claims.turns(owner(ready()))


def test_early_ready_claim_reports_unready_children() -> None:
    others = [pod("late", "Pending"), pod("right", "Running"), pod("stranger", "Pending", of="u2")]
    (claim,) = early_claims(owner(ready()), others)
    assert (claim.kind, claim.key, claim.child_kind, claim.child) == (
        "x.dev/v1/A",
        "default/a",
        "v1/Pod",
        "default/late",
    )
    assert str(claim).startswith("x.dev/v1/A default/a reports Ready while v1/Pod default/late is InProgress: ")
    assert not early_claims(owner(ready()), [pod("right", "Running")])
