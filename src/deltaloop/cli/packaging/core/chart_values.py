"""What users of a chart may set: few things, each said once. Its file, its schema and its table are made of that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.packaging.core.manifests import RESOURCES

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_FLAG: Final[dict[str, Any]] = {"type": "boolean"}
_OBJECT: Final[dict[str, Any]] = {"type": "object"}


@final
@dataclass(frozen=True, slots=True)
class ChartValue:
    """One value.

    Attributes:
        path: Where it stands, such as ``image.tag``; of at most two names.
        default: What it is if nobody sets it.
        description: What it does.
        schema: What may be set, in JSON Schema.
    """

    path: str
    default: Any
    description: str
    schema: dict[str, Any]


def chart_values(repository: str, tag: str, *, service_monitor: bool) -> list[ChartValue]:
    """Return the values of a chart.

    Args:
        repository: The image's.
        tag: The image's; empty for the chart's ``appVersion``.
        service_monitor: Whether Prometheus' operator is told of the program where nobody says so.
    """
    policies = {**_TEXT, "enum": ["Always", "IfNotPresent", "Never"]}
    levels = {**_TEXT, "enum": ["DEBUG", "INFO", "WARNING", "ERROR"]}
    secrets = {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}}
    tolerations = {"type": "array", "items": _OBJECT}
    selector = {"type": "object", "additionalProperties": _TEXT}
    return [
        ChartValue("image.repository", repository, "The image, without its tag.", {**_TEXT, "minLength": 1}),
        ChartValue("image.tag", tag, "Its tag; the chart's appVersion if it is empty.", _TEXT),
        ChartValue("image.pullPolicy", "IfNotPresent", "When nodes pull it.", policies),
        ChartValue("imagePullSecrets", [], "Secrets to pull it with, such as [{name: registry}].", secrets),
        ChartValue("replicas", 2, "Pods; one works, the others stand by.", {"type": "integer", "minimum": 0}),
        ChartValue("logLevel", "INFO", "DEBUG, INFO, WARNING or ERROR.", levels),
        ChartValue("resources", RESOURCES, "What a Pod asks for, and may have.", _OBJECT),
        ChartValue("nodeSelector", {}, "Labels of the nodes that Pods may run on.", selector),
        ChartValue("tolerations", [], "Taints of nodes that Pods stand.", tolerations),
        ChartValue("crds.install", True, "Whether the chart brings the definitions; they stay when it goes.", _FLAG),
        ChartValue("networkPolicy.enabled", True, "Whether only probes and metrics are let in.", _FLAG),
        ChartValue("serviceMonitor.enabled", service_monitor, "Whether Prometheus' operator scrapes it.", _FLAG),
    ]


def values_text(values: Sequence[ChartValue]) -> str:
    """Return ``values.yaml``: the defaults, each with what it does."""
    lines = ["# Set them with --set or --values; this file is made by `deltaloop package`, which writes it anew."]
    above = ""
    for value in values:
        head, dot, name = value.path.rpartition(".")
        if dot and head != above:
            lines.append(f"{head}:")
        above, indent = head, "  " if dot else ""
        lines.append(f"{indent}# {value.description}")
        lines += [f"{indent}{line}" for line in write_yaml([{name: value.default}], indents_lists=True).splitlines()]
    return "\n".join(lines) + "\n"


def values_schema(values: Sequence[ChartValue]) -> str:
    """Return ``values.schema.json``: Helm refuses what it does not allow, names that are not known among it."""
    properties: dict[str, Any] = {}
    for value in values:
        head, dot, name = value.path.rpartition(".")
        said = {"description": value.description, **value.schema}
        if dot:
            outer = properties.setdefault(head, {"type": "object", "additionalProperties": False, "properties": {}})
            outer["properties"][name] = said
        else:
            properties[name] = said
    # Charts that this one is part of, and Helm itself, set these.
    properties["global"] = {"description": "What a chart around this one gives to all its parts.", **_OBJECT}
    whole = {"$schema": _DRAFT, "type": "object", "additionalProperties": False, "properties": properties}
    return json.dumps(whole, indent=2) + "\n"


def values_table(values: Sequence[ChartValue]) -> str:
    """Return the values as a table of Markdown."""
    rows = [f"| `{each.path}` | `{json.dumps(each.default)}` | {each.description} |" for each in values]
    return "\n".join(["| value | default | |", "| --- | --- | --- |", *rows]) + "\n"
