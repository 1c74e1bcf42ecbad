"""``deltaloop rbac``: the roles that a module's controllers need. Core: ``runtime/core/access.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import yaml

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cli.program_access import event_access, program_access
from deltaloop.events import EventApi
from deltaloop.runtime import Controller
from deltaloop.runtime.core.access import AccessRule, roles, rules_of_access
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.wiring import kinds_named, wires_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the program around the controllers does, which needs rights of its own.

    Attributes:
        namespace: The only namespace that is watched; None for all.
        lease_namespace: Where the Lease of leader election is; None without one.
        event_api: What Events are written in.
        token_review: Whether the API server is asked who may get the metrics.
    """

    namespace: str | None = None
    lease_namespace: str | None = None
    event_api: EventApi = EventApi.CORE_V1
    token_review: bool = False

    def rules(self, *, cluster_kinds: bool) -> list[AccessRule]:
        """Return what it needs.

        Args:
            cluster_kinds: Whether kinds without namespaces are reconciled, whose Events are in ``default``.
        """
        places = {"default", self.namespace} if self.namespace and cluster_kinds else {self.namespace or ""}
        needed = event_access(self.event_api, namespaces=tuple(sorted(places)))
        needed += program_access(lease_namespace=self.lease_namespace, token_review=self.token_review)
        return [rule for access in needed for rule in rules_of_access(access, namespace=None)]


def rules_of(controllers: Sequence[Controller], *, program: Program) -> tuple[list[AccessRule], list[str]]:
    """Return what controllers need, with what the program around them needs, and the names whose plural was guessed.

    Args:
        controllers: The controllers as they were declared.
        program: What is around them.
    """
    known: dict[str, ResourceType[Any]] = {}
    guessed: list[str] = []
    for name in sorted({name for controller in controllers for name in kinds_named(controller, writes=True)}):
        try:
            known[name] = parse_resource_type(name)
        except UnknownResourceError:
            known[name] = guess(name)
            guessed.append(name)
    plans = [wires_of(controller, known) for controller in controllers]
    rules = [rule for plan in plans for rule in plan.rules(program.namespace)]
    rules += [rule for plan in plans for rule in plan.implied_rules(program.namespace)]
    return rules + program.rules(cluster_kinds=any(not plan.kind.namespaced for plan in plans)), guessed


def guess(name: str) -> ResourceType[Any]:
    """Make a resource type from a name such as ``example.com/v1/Widget`` by the rules that Kubernetes' tools guess by.

    Raises:
        UnknownResourceError: If the name is not of that form.

    Source: apimachinery pkg/api/meta/restmapper.go ``UnsafeGuessKindToResource``.
    """
    api_version, _, kind = name.rpartition("/")
    if not api_version or not kind:
        raise UnknownResourceError(f"{name!r} names no kind without a server; write GROUP/VERSION/Kind")
    lower = kind.lower()
    if lower.endswith("s"):
        plural = f"{lower}es"
    elif lower.endswith("y"):
        plural = f"{lower[:-1]}ies"
    else:
        plural = f"{lower}s"
    return ResourceType[Resource].untyped(api_version, kind, plural)


def print_roles(controllers: Sequence[Controller], *, name: str, program: Program) -> str:
    """Return the roles as YAML, with a comment for each name that was guessed."""
    rules, guessed = rules_of(controllers, program=program)
    comments = [
        f"# The plural of {kind} was guessed; a ResourceType in the code says it for sure.\n" for kind in guessed
    ]
    documents: list[Mapping[str, Any]] = list(roles(rules, name=name))
    return "".join(comments) + yaml.safe_dump_all(documents, sort_keys=False, default_flow_style=None)


def print_recorded(recorded: RecordedAccess, *, name: str, namespace: str | None) -> str:
    """Return the roles of what a run did as YAML.

    Args:
        recorded: What it did.
        name: Name of the roles.
        namespace: Make Roles of this namespace of what was done in no particular one.
    """
    comment = "# What one run did; what it did not come to is missing.\n"
    documents: list[Mapping[str, Any]] = list(roles(recorded.rules(), name=name, namespace=namespace))
    return comment + yaml.safe_dump_all(documents, sort_keys=False, default_flow_style=None)
