"""Helm charts of programs.

The objects are those of ``manifests``, with placeholders for the values of a release, which are plain words in the YAML
and then replaced by template expressions.

Source: https://helm.sh/docs/topics/charts/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.packaging.core import manifests
from deltaloop.cli.packaging.core.chart_values import (
    SETTINGS,
    ChartValue,
    chart_values,
    values_schema,
    values_table,
    values_text,
)
from deltaloop.cli.packaging.core.manifests import Manifest, PackagedProgram

NAME: Final = "HELM-name-HELM"
NAMESPACE: Final = "HELM-namespace-HELM"
"""Placeholders for the name and the namespace of a release, used in the roles that are passed to ``chart``."""
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
_SEVERAL: Final = 'or (kindIs "invalid" .Values.replicas) (gt (int .Values.replicas) 1)'
_POD_PARTS: Final = ("imagePullSecrets", "nodeSelector", "affinity", "tolerations", "volumes", "priorityClassName")
_PLAIN: Final = ("priorityClassName",)
_KNOWN: Final = "|".join(_TEXTS)
_SLOT: Final = re.compile(f"HELM-({_KNOWN})-HELM")
_WHOLE: Final = re.compile(f"(?<=[:-] )HELM-({_KNOWN})-HELM$", re.MULTILINE)
_NUMBER: Final = re.compile(f"^( *)(\\w+): HELM-({'|'.join(_NUMBERS)})-HELM$", re.MULTILINE)
_PART: Final = re.compile(r"^( *)(\w+): HELM-part-([\w.]+)-HELM$", re.MULTILINE)
_ITEMS: Final = re.compile(r"^( *)(?:- HELM-items-([\w.]+)-HELM|HELM-items-([\w.]+)-HELM: .*)$", re.MULTILINE)
_ELSE: Final = re.compile(r"^( *)- HELM-else-([\w.]+)-HELM$", re.MULTILINE)
_END: Final = re.compile(r"^( *)- HELM-end-HELM$", re.MULTILINE)
_SETTING: Final = re.compile(r"^( *)- HELM-setting-(\w+)-([\w.]+)-HELM$", re.MULTILINE)
_KEEP: Final[Mapping[str, str]] = {"helm.sh/resource-policy": "keep"}
_HELPERS: Final = """\
{{/* Name of the objects of a release. */}}
{{- define "APP.name" -}}
{{- if contains "APP" .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-APP" .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}
"""
_SETTING_HELPER: Final = """\

{{/* Environment variable of the container: a value, a reference to a Secret or ConfigMap, or none for null. */}}
{{- define "APP.variable" -}}
{{- if kindIs "map" .value }}
- name: {{ .name }}
  valueFrom:
    {{- toYaml .value | nindent 4 }}
{{- else if kindIs "string" .value }}
- name: {{ .name }}
  value: {{ .value | quote }}
{{- else if not (kindIs "invalid" .value) }}
- name: {{ .name }}
  value: {{ .value | toJson | quote }}
{{- end }}
{{- end }}
"""
_NOTES: Final = """\
{{ include "APP.name" . }} runs in {{ .Release.Namespace }}{{ with .Values.replicas }}, with {{ . }} replicas{{ end }}:

  kubectl --namespace {{ .Release.Namespace }} rollout status deployment {{ include "APP.name" . }}
"""


def chart(program: PackagedProgram, *, version: str, repository: str, tag: str = "") -> dict[str, str]:
    """Return the files of a chart by path; the program's roles use ``NAME`` and ``NAMESPACE``."""
    values = values_of(program, repository=repository, tag=tag)
    slotted = _slotted(program)
    helpers = _HELPERS + (_SETTING_HELPER if program.settings else "")
    about = {
        "apiVersion": "v2",
        "name": program.app,
        "description": f"Operator {program.app} with its CRDs and roles.",
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
        "templates/_helpers.tpl": helpers.replace("APP", program.app),
        "templates/NOTES.txt": _NOTES.replace("APP", program.app),
        **_templates(slotted),
    }


def values_of(program: PackagedProgram, *, repository: str, tag: str) -> list[ChartValue]:
    return chart_values(
        repository, tag, service_monitor=program.service_monitor, settings=program.settings, shards=program.shards
    )


def _slotted(program: PackagedProgram) -> PackagedProgram:
    """Return the program with placeholders for the values of a release."""
    return PackagedProgram(
        app=program.app,
        name=NAME,
        namespace=NAMESPACE,
        image="HELM-image-HELM",
        version="HELM-version-HELM",
        definitions=tuple(_kept(each) for each in program.definitions),
        roles=program.roles,
        arguments=(*program.arguments, "HELM-items-extraArgs-HELM"),
        shards=program.shards,
        replicas="HELM-replicas-HELM",
        log_level="HELM-logLevel-HELM",
        resources=_part("resources"),
        pod={name: _part(name) for name in _POD_PARTS},
        container={
            "env": [*_variables(program), "HELM-items-env-HELM"] if program.settings else _part("env"),
            "envFrom": _part("envFrom"),
            "volumeMounts": _part("volumeMounts"),
        },
        spread=lambda default: ["HELM-else-topologySpreadConstraints-HELM", default, "HELM-end-HELM"],
        pod_labels={"HELM-items-podLabels-HELM": ""},
        pod_annotations=_part("podAnnotations"),
        account_annotations=_part("serviceAccount.annotations"),
        admitted=_part("networkPolicy.from"),
        pull_policy="HELM-pullPolicy-HELM",
        more_labels={"app.kubernetes.io/managed-by": "HELM-service-HELM"},
        webhooks=program.webhooks,
        authority=program.authority,
    )


def _part(value: str) -> str:
    """Return the placeholder for a whole field, which is omitted if its value is empty."""
    return f"HELM-part-{value}-HELM"


def _variables(program: PackagedProgram) -> list[str]:
    return [f"HELM-setting-{each.variable}-{SETTINGS}.{each.name}-HELM" for each in program.settings]


def _kept(definition: Manifest) -> Manifest:
    """Return a CRD that survives the release, because deleting it would delete all objects of its kind."""
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
        ("templates/disruption-budget.yaml", [manifests.disruption_budget(program)], _SEVERAL),
        ("templates/network-policy.yaml", [manifests.network_policy(program)], ".Values.networkPolicy.enabled"),
        ("templates/webhooks.yaml", manifests.configurations(program), ""),
        ("templates/service-monitor.yaml", [manifests.service_monitor(program)], ".Values.serviceMonitor.enabled"),
    ]
    return {path: _template(program.app, these, condition) for path, these, condition in objects if these}


def _template(app: str, objects: Iterable[Manifest], condition: str) -> str:
    text = _escaped(write_yaml(objects, indents_lists=True))
    text = _PART.sub(_optional_field, text)
    text = _NUMBER.sub(_number_unless_null, text)
    text = _ITEMS.sub(lambda found: _with(found[1], found[2] or found[3], "{{- end }}"), text)
    text = _ELSE.sub(lambda found: _with(found[1], found[2], "{{- else }}"), text)
    text = _END.sub(r"\1{{- end }}", text)
    text = _SETTING.sub(lambda found: _variable(found, app), text)
    text = _WHOLE.sub(lambda found: _expression(found[1], app, quoted=True), text)
    text = _SLOT.sub(lambda found: _expression(found[1], app, quoted=False), text)
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _expression(slot: str, app: str, *, quoted: bool) -> str:
    text = _TEXTS[slot].replace("APP", app)
    return f"{{{{ {text}{' | quote' if quoted else ''} }}}}"


def _number_unless_null(found: re.Match[str]) -> str:
    indent, name, value = found[1], found[2], _NUMBERS[found[3]]
    condition = f'{{{{- if not (kindIs "invalid" {value}) }}}}'  # 0 is false
    return f"{indent}{condition}\n{indent}{name}: {{{{ {value} }}}}\n{indent}{{{{- end }}}}"


def _optional_field(found: re.Match[str]) -> str:
    indent, name, value = found[1], found[2], found[3]
    if value in _PLAIN:
        return f"{indent}{{{{- with .Values.{value} }}}}\n{indent}{name}: {{{{ . | quote }}}}\n{indent}{{{{- end }}}}"
    lines = (
        f"{{{{- with .Values.{value} }}}}",
        f"{indent}{name}:",
        f"{indent}  {{{{- toYaml . | nindent {len(indent) + 2} }}}}",
        f"{indent}{{{{- end }}}}",
    )
    return f"{indent}" + "\n".join(lines)


def _with(indent: str, value: str, last: str) -> str:
    """Return the template lines for the items or entries of a value, followed by ``last``."""
    return "\n".join(
        (
            f"{indent}{{{{- with .Values.{value} }}}}",
            f"{indent}{{{{- toYaml . | nindent {len(indent)} }}}}",
            f"{indent}{last}",
        )
    )


def _variable(found: re.Match[str], app: str) -> str:
    indent, variable, value = found[1], found[2], found[3]
    given = f'(dict "name" "{variable}" "value" .Values.{value})'
    return f'{indent}{{{{- include "{app}.variable" {given} | indent {len(indent)} }}}}'


def _escaped(text: str) -> str:
    return text.replace("{{", '{{ "{{" }}')


def definitions_text(template: str) -> str:
    """Return the CRDs of a chart's template file as plain YAML."""
    lines = [line for line in template.splitlines() if not line.startswith("{{-")]
    return "\n".join(lines).replace('{{ "{{" }}', "{{") + "\n"
