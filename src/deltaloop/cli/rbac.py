"""``deltaloop rbac``: the roles that a module's controllers need. Core: ``runtime/core/access.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deltaloop.api.yaml_writer import write_yaml
from deltaloop.runtime import Controller
from deltaloop.runtime.core.access import roles
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.program.access import Program, rules_of


def print_roles(controllers: Sequence[Controller], *, name: str, program: Program) -> str:
    """Return the roles as YAML, with a comment for each name that was guessed."""
    rules, guessed = rules_of(controllers, program=program)
    comments = [
        f"# The plural of {kind} was guessed; a ResourceType in the code says it for sure.\n" for kind in guessed
    ]
    documents: list[Mapping[str, Any]] = list(roles(rules, name=name))
    return "".join(comments) + write_yaml(documents, short_in_one_line=True)


def print_recorded(recorded: RecordedAccess, *, name: str, namespace: str | None) -> str:
    """Return the roles of what a run did as YAML.

    Args:
        recorded: What it did.
        name: Name of the roles.
        namespace: Make Roles of this namespace of what was done in no particular one.
    """
    comment = "# What one run did; what it did not come to is missing.\n"
    documents: list[Mapping[str, Any]] = list(roles(recorded.rules(), name=name, namespace=namespace))
    return comment + write_yaml(documents, short_in_one_line=True)
