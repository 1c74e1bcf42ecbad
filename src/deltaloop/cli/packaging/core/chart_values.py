"""Values of a chart, with ``values.yaml``, its schema and the table of the README."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, is_mapping, items, mapping, texts
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.packaging.core.manifests import RESOURCES
from deltaloop.runtime.program.settings import Setting

_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}


def fits(schema: Mapping[str, Any], value: object) -> bool:
    kinds = schema.get("type")
    if kinds is not None and not any(_is_a(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "anyOf" in schema and not any(fits(each, value) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(each, value) for each in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        return False
    if isinstance(value, list):
        return all(fits(mapping(schema.get("items")), each) for each in items(cast("object", value)))
    return not is_mapping(value) or _fits_object(schema, value)


def _fits_object(schema: Mapping[str, Any], value: Mapping[str, object]) -> bool:
    known, other = mapping(schema.get("properties")), schema.get("additionalProperties")
    return all(name in value for name in texts(schema.get("required"))) and all(
        fits(mapping(known[name]), each) if name in known else other is not False and fits(mapping(other), each)
        for name, each in value.items()
    )


def _is_a(kind: str, value: object) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


VALUES: Final = "values.yaml"
SCHEMA: Final = "values.schema.json"


def with_own_values(there: Mapping[str, str | None], made: Mapping[str, str], values: list[ChartValue]) -> str:
    """Return the text of ``values.yaml`` with the user's own values.

    A value is the user's own if it differs from the default in the schema of the same chart. Values that the new chart
    does not have are dropped. Raises InvalidArgumentError if an own value does not match the schema.
    """
    text, schema = there.get(VALUES), there.get(SCHEMA)
    if text is None or schema is None or text == made[VALUES]:
        return made[VALUES]
    try:
        given, before = read_yaml(text), json.loads(schema)
    except ValueError:
        return made[VALUES]
    kept = [_with_own(value, given, before) for value in values]
    return text if given == read_yaml(values_text(kept)) else values_text(kept)


def _with_own(value: ChartValue, given: Any, before: Any) -> ChartValue:
    own: object = given
    old: object = before
    for step in value.path.split("."):
        old = at(old, "properties", step)
        if not is_mapping(own) or step not in own:
            return value
        own = own[step]
    if own == at(old, "default"):
        return value
    if not fits(value.schema, own):
        raise InvalidArgumentError(f"{VALUES}: {value.path} must fit {SCHEMA}. Change the value.")  # can be secret
    return ChartValue(value.path, own, value.description, value.schema)


_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_TEXT: Final[dict[str, Any]] = {"type": "string"}
_FLAG: Final[dict[str, Any]] = {"type": "boolean"}
_OBJECT: Final[dict[str, Any]] = {"type": "object"}
_OBJECTS: Final[dict[str, Any]] = {"type": "array", "items": _OBJECT}
_TEXTS: Final[dict[str, Any]] = {"type": "object", "additionalProperties": _TEXT}
_NAMED: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {**_TEXT, "minLength": 1}},
}
_SOURCES: Final = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef")
SETTINGS: Final = "settings"
"""Key of the program's own settings."""


@final
@dataclass(frozen=True, slots=True)
class ChartValue:
    path: str
    default: Any
    description: str
    schema: dict[str, Any]


def chart_values(
    repository: str, tag: str, *, service_monitor: bool, settings: Sequence[Setting] = (), shards: bool = False
) -> list[ChartValue]:
    """Return the values of a chart; an empty tag means the chart's ``appVersion``."""
    policies = {**_TEXT, "enum": ["Always", "IfNotPresent", "Never"]}
    levels = {**_TEXT, "enum": ["DEBUG", "INFO", "WARNING", "ERROR"]}
    named = {"type": "array", "items": _NAMED}
    peers = "Peers (from) that may reach metrics and health. Defaults to all. Include the kubelets."
    return [
        ChartValue("image.repository", repository, "Image, without its tag.", {**_TEXT, "minLength": 1}),
        ChartValue("image.tag", tag, "Tag of the image. Defaults to the chart's appVersion.", _TEXT),
        ChartValue("image.pullPolicy", "IfNotPresent", "Policy for pulling the image.", policies),
        ChartValue("imagePullSecrets", [], "Secrets for pulling the image, for example [{name: registry}].", named),
        ChartValue(
            "replicas",
            2,
            "Number of Pods. They share the objects. null leaves the number to an autoscaler."
            if shards
            else "Number of Pods. One leads, and the others are standbys.",
            {"type": ["integer", "null"], "minimum": 0},
        ),
        ChartValue("logLevel", "INFO", "Log level: DEBUG, INFO, WARNING or ERROR.", levels),
        *(_of_setting(each) for each in settings),
        ChartValue("env", [], "Additional environment variables of the container.", named),
        ChartValue("envFrom", [], "ConfigMaps and Secrets whose keys become environment variables.", _OBJECTS),
        ChartValue("extraArgs", [], "Additional flags of `deltaloop run`.", {"type": "array", "items": _TEXT}),
        ChartValue("resources", RESOURCES, "Resource requests and limits of the container.", _OBJECT),
        ChartValue("volumes", [], "Volumes of the Pod.", named),
        ChartValue("volumeMounts", [], "Mounts of the volumes in the container.", named),
        ChartValue("podAnnotations", {}, "Annotations of the Pods.", _TEXTS),
        ChartValue("podLabels", {}, "Additional labels of the Pods.", _TEXTS),
        ChartValue("serviceAccount.annotations", {}, "Annotations of the service account.", _TEXTS),
        ChartValue("nodeSelector", {}, "Labels of the nodes on which Pods may run.", _TEXTS),
        ChartValue("affinity", {}, "Affinity of the Pods.", _OBJECT),
        ChartValue("tolerations", [], "Taints of nodes that the Pods tolerate.", _OBJECTS),
        ChartValue("topologySpreadConstraints", [], "Spread of the Pods. Defaults to different nodes.", _OBJECTS),
        ChartValue("priorityClassName", "", "Priority class of the Pods.", _TEXT),
        ChartValue("crds.install", True, "Whether the chart installs the CRDs. They remain after an uninstall.", _FLAG),
        ChartValue("networkPolicy.enabled", True, "Whether a NetworkPolicy limits traffic to the Pods.", _FLAG),
        ChartValue("networkPolicy.from", [], peers, _OBJECTS),
        ChartValue(
            "serviceMonitor.enabled", service_monitor, "Whether the Prometheus Operator scrapes the Pods.", _FLAG
        ),
    ]


def _of_setting(setting: Setting) -> ChartValue:
    """Return the value of a setting: a plain value, or a reference to a Secret, a ConfigMap or a field."""
    plain = _json_schema(
        {name: each for name, each in setting.schema.items() if name not in ("default", "description")}
    )
    sources = [{"required": [name], "properties": {name: _OBJECT}} for name in _SOURCES]
    schema = {"anyOf": [plain, {"type": "object", "oneOf": sources}, *([] if setting.required else [{"type": "null"}])]}
    about = str(setting.schema.get("description", "")).strip().replace("\n", " ").replace("|", "\\|")
    text = (
        f"{about} Variable {setting.variable}. Required."
        if setting.required
        else f"{about} Variable {setting.variable}."
    )
    return ChartValue(f"{SETTINGS}.{setting.name}", setting.schema.get("default"), text.strip(), schema)


def _json_schema(value: object) -> Any:
    """Convert a schema of Kubernetes to plain JSON Schema."""
    if isinstance(value, list):
        return [_json_schema(each) for each in items(cast("object", value))]
    if not is_mapping(value):
        return value
    if value.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    kept: dict[str, Any] = {name: _json_schema(each) for name, each in value.items() if not name.startswith("x-")}
    if kept.pop("nullable", False) and "type" in kept:
        kept["type"] = [kept["type"], "null"]
    return kept


def values_text(values: Sequence[ChartValue]) -> str:
    """Return ``values.yaml`` with the defaults and descriptions."""
    lines = ["# Set these with --set or --values. `deltaloop package` keeps the values that you change here."]
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
    """Return ``values.schema.json``, with which Helm rejects unknown values and wrong types."""
    return json.dumps(schema_of(values), indent=2) + "\n"


def schema_of(values: Sequence[ChartValue]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for value in values:
        head, dot, name = value.path.rpartition(".")
        said = {"description": value.description, "default": value.default, **value.schema}
        if dot:
            outer = properties.setdefault(head, {"type": "object", "additionalProperties": False, "properties": {}})
            outer["properties"][name] = said
            if head == SETTINGS and value.default is None and not fits(value.schema, None):
                outer.setdefault("required", []).append(name)
        else:
            properties[name] = said
    # Parent charts and Helm itself set these.
    properties["global"] = {"description": "Values that a parent chart passes to its subcharts.", **_OBJECT}
    return {"$schema": _DRAFT, "type": "object", "additionalProperties": False, "properties": properties}


def values_table(values: Sequence[ChartValue]) -> str:
    rows = [f"| `{each.path}` | `{json.dumps(each.default)}` | {each.description} |" for each in values]
    return "\n".join(["| value | default | description |", "| --- | --- | --- |", *rows]) + "\n"
