"""The Pod that ``kubectl deltaloop`` chooses; ``test_doctor.py`` queries one."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cli.kubectl_plugin import choose_pod
from deltaloop.cli.running_program import NoAnswerError


def pod(name: str, app: str = "", *, port: str = "health", phase: str = "Running") -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": app} if app else {}
    ports = [{"name": port, "containerPort": 8083}]
    return {
        "metadata": {"name": name, "namespace": "ops", "labels": labels},
        "spec": {"containers": [{"name": "main", "ports": ports}]},
        "status": {"phase": phase},
    }


def lease(name: str, holder: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ops"}, "spec": {"holderIdentity": f"{holder}_7c1"}}


GREETERS = [pod("greeter-a", "greeter"), pod("greeter-b", "greeter"), pod("web", "shop", port="http")]
LEASES = [lease("greeter", "greeter-b"), lease("other", "gone")]


@pytest.mark.parametrize(
    ("program", "chosen"),
    [
        ("", "ops/greeter-b:8083"),
        ("greeter", "ops/greeter-b:8083"),
        ("greeter-a", "ops/greeter-a:8083"),
        ("web", "ops/web:8081"),
    ],
)
def test_leader_of_the_named_program_is_chosen(program: str, chosen: str) -> None:
    assert choose_pod(GREETERS, LEASES, program) == chosen


def test_program_without_election_has_any_running_pod() -> None:
    pods = [pod("greeter-a", "greeter", phase="Pending"), pod("greeter-c", "greeter"), pod("greeter-b", "greeter")]
    assert choose_pod(pods, [], "greeter") == "ops/greeter-b:8083"


def test_missing_and_ambiguous_programs_are_rejected() -> None:
    with pytest.raises(NoAnswerError):
        choose_pod(GREETERS, LEASES, "nothing")
    with pytest.raises(NoAnswerError):
        choose_pod([pod("web", port="http")], [], "")
    with pytest.raises(InvalidArgumentError, match="ops/greeter, ops/painter"):
        choose_pod([*GREETERS, pod("painter-a", "painter")], [], "")
