"""A program's objects as a Helm chart.

The objects are made as for ``manifests``, with slots where a user of the chart decides. Written as YAML, slots are
plain words, which become expressions of templates; whatever else looks like an expression (a rule's message in a
definition) is written so that Helm gives it out as it is.

Source: https://helm.sh/docs/topics/charts/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.packaging.core import manifests
from deltaloop.cli.packaging.core.chart_values import chart_values, values_schema, values_table, values_text
from deltaloop.cli.packaging.core.manifests import Manifest, PackagedProgram

NAME: Final = "HELM-name-HELM"
NAMESPACE: Final = "HELM-namespace-HELM"
"""What stands for the name and the namespace of a release, in the roles that are given to ``chart``."""
DEFINITIONS_FILE: Final = "templates/definitions.yaml"
_TEXTS: Final[Mapping[str, str]] = {
    "name": 'include "APP.name" .',
    "namespace": ".Release.Namespace",
    "image": 'printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion)',
    "pullPolicy": ".Values.image.pullPolicy",
    "version": '.Chart.AppVersion | replace "+" "_"',
    "logLevel": ".Values.logLevel",
    "service": ".Release.Service",
}
_NUMBERS: Final[Mapping[str, str]] = {"replicas": ".Values.replicas"}
_PARTS: Final = ("imagePullSecrets", "nodeSelector", "tolerations", "resources")
_KNOWN: Final = "|".join([*_TEXTS, *_NUMBERS])
_SLOT: Final = re.compile(f"HELM-({_KNOWN})-HELM")
_WHOLE: Final = re.compile(f"(?<=[:-] )HELM-({_KNOWN})-HELM$", re.MULTILINE)
_PART: Final = re.compile(r"^( *)(\w+): HELM-part-HELM$", re.MULTILINE)
_KEEP: Final[Mapping[str, str]] = {"helm.sh/resource-policy": "keep"}
_HELPERS: Final = """\
{{/* The name of a release's objects. */}}
{{- define "APP.name" -}}
{{- if contains "APP" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-APP" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}
"""
_NOTES: Final = """\
{{ include "APP.name" . }} runs in {{ .Release.Namespace }}, with {{ .Values.replicas }} replicas:

  kubectl --namespace {{ .Release.Namespace }} rollout status deployment {{ include "APP.name" . }}
"""


def chart(program: PackagedProgram, *, version: str, repository: str, tag: str = "") -> dict[str, str]:
    """Return the files of a chart, by their paths in it.

    Args:
        program: The program, whose roles have ``NAME`` and ``NAMESPACE`` for their own.
        version: Of the chart, and of the program unless ``tag`` says otherwise.
        repository: The image, without tag.
        tag: Its tag; empty for the version.
    """
    values = chart_values(repository, tag, service_monitor=program.service_monitor)
    slotted = _slotted(program)
    about = {
        "apiVersion": "v2",
        "name": program.app,
        "description": f"Runs {program.app}, with the definitions and the roles that it needs.",
        "type": "application",
        "version": version,
        "appVersion": version,
    }
    table = values_table(values)
    return {
        "Chart.yaml": write_yaml([about], indents_lists=True),
        "README.md": f"# {program.app}\n\n{about['description']}\n\n## Values\n\n{table}",
        "values.yaml": values_text(values),
        "values.schema.json": values_schema(values),
        "templates/_helpers.tpl": _HELPERS.replace("APP", program.app),
        "templates/NOTES.txt": _NOTES.replace("APP", program.app),
        **_templates(slotted),
    }


def _slotted(program: PackagedProgram) -> PackagedProgram:
    """Return the program with slots for what a release decides."""
    return PackagedProgram(
        app=program.app,
        name=NAME,
        namespace=NAMESPACE,
        image="HELM-image-HELM",
        version="HELM-version-HELM",
        definitions=tuple(_kept(each) for each in program.definitions),
        roles=program.roles,
        arguments=program.arguments,
        replicas="HELM-replicas-HELM",
        log_level="HELM-logLevel-HELM",
        resources="HELM-part-HELM",
        pod={name: "HELM-part-HELM" for name in _PARTS if name != "resources"},
        pull_policy="HELM-pullPolicy-HELM",
        more_labels={"app.kubernetes.io/managed-by": "HELM-service-HELM"},
        webhooks=program.webhooks,
        authority=program.authority,
    )


def _kept(definition: Manifest) -> Manifest:
    """Return a definition that stays when its release goes: all objects of its kind would go with it."""
    metadata: Manifest = definition["metadata"]
    return {**definition, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **_KEEP}}}


def _templates(program: PackagedProgram) -> dict[str, str]:
    objects: list[tuple[str, Sequence[Manifest], str]] = [
        (DEFINITIONS_FILE, program.definitions, ".Values.crds.install"),
        ("templates/service-account.yaml", [manifests.service_account(program)], ""),
        ("templates/roles.yaml", manifests.access(program), ""),
        ("templates/authority.yaml", manifests.authority(program), ""),
        ("templates/service.yaml", [manifests.service(program)], ""),
        ("templates/deployment.yaml", [manifests.deployment(program)], ""),
        ("templates/disruption-budget.yaml", [manifests.disruption_budget(program)], "gt (int .Values.replicas) 1"),
        ("templates/network-policy.yaml", [manifests.network_policy(program)], ".Values.networkPolicy.enabled"),
        ("templates/webhooks.yaml", manifests.configurations(program), ""),
        ("templates/service-monitor.yaml", [manifests.service_monitor(program)], ".Values.serviceMonitor.enabled"),
    ]
    return {path: _template(program.app, these, condition) for path, these, condition in objects if these}


def _template(app: str, objects: Iterable[Manifest], condition: str) -> str:
    text = _escaped(write_yaml(objects, indents_lists=True))
    text = _PART.sub(_part, text)
    text = _WHOLE.sub(lambda found: _expression(found[1], app, quoted=True), text)
    text = _SLOT.sub(lambda found: _expression(found[1], app, quoted=False), text)
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _expression(slot: str, app: str, *, quoted: bool) -> str:
    if slot in _NUMBERS:
        return f"{{{{ {_NUMBERS[slot]} }}}}"
    text = _TEXTS[slot].replace("APP", app)
    return f"{{{{ {text}{' | quote' if quoted else ''} }}}}"


def _part(found: re.Match[str]) -> str:
    indent, name = found[1], found[2]
    lines = (
        f"{{{{- with .Values.{name} }}}}",
        f"{indent}{name}:",
        f"{indent}  {{{{- toYaml . | nindent {len(indent) + 2} }}}}",
        f"{indent}{{{{- end }}}}",
    )
    return f"{indent}" + "\n".join(lines)


def _escaped(text: str) -> str:
    """Return a text that Helm gives out as it is."""
    return text.replace("{{", '{{ "{{" }}')


def definitions_text(template: str) -> str:
    """Return what a file of definitions of a chart says, as plain YAML."""
    lines = [line for line in template.splitlines() if not line.startswith("{{-")]
    return "\n".join(lines).replace('{{ "{{" }}', "{{") + "\n"
