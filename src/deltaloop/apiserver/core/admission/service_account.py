"""ServiceAccount: assign an existing account to each pod, and add its token and image pull secrets.

Source: Kubernetes plugin/pkg/admission/serviceaccount.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.pod_scheduling import CREATE, PODS, with_spec
from deltaloop.apiserver.core.metadata.rules import generated_name

_DEFAULT: Final = "default"
_MIRROR: Final = "kubernetes.io/config.mirror"
_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME: Final = "kube-api-access-"
_TOKEN_SECONDS: Final = 3607
_SOURCES: Final = (
    {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
)
_CONTAINERS: Final = (
    ("initContainers", "init container"),
    ("containers", "container"),
)


def _account(attributes: AdmissionAttributes, name: str) -> Resource:
    found = attributes.objects.get(kinds.SERVICE_ACCOUNT.group_resource, f"{attributes.namespace}/{name}")
    if found is None:
        where = f"{attributes.namespace}/{name}"
        raise attributes.refused(f'error looking up service account {where}: serviceaccount "{name}" not found')
    return found


def _is_mirror(attributes: AdmissionAttributes) -> bool:
    return _MIRROR in mapping(at(attributes.after, "metadata", "annotations"))


def _fill(attributes: AdmissionAttributes) -> dict[str, object] | None:
    if _is_mirror(attributes):
        _check(attributes)
        return None
    spec = mapping(at(attributes.after, "spec"))
    name = text(spec.get("serviceAccountName")) or _DEFAULT
    account = _account(attributes, name)
    fields = account.to_dict()
    changed: dict[str, object] = {"serviceAccountName": name, "serviceAccount": name}
    automount = spec.get("automountServiceAccountToken")
    if automount is None:
        automount = fields.get("automountServiceAccountToken")
    if automount is not False:
        changed |= _with_token(spec, random=attributes.context.moment.random)
    if not items(spec.get("imagePullSecrets")) and items(fields.get("imagePullSecrets")):
        changed["imagePullSecrets"] = [{"name": at(item, "name")} for item in items(fields["imagePullSecrets"])]
    return with_spec(attributes.after, **changed)


def _with_token(spec: Mapping[str, object], *, random: float) -> dict[str, object]:
    volumes = items(spec.get("volumes"))
    names = [text(at(volume, "name")) for volume in volumes]
    present = next((name for name in names if name.startswith(_VOLUME)), None)
    name = present or generated_name(_VOLUME, random=random, attempt=0)
    mount: dict[str, object] = {"name": name, "readOnly": True, "mountPath": _MOUNT}
    changed: dict[str, object] = {}
    needed = False
    for field, _ in _CONTAINERS:
        containers: list[object] = []
        for container in map(mapping, items(spec.get(field))):
            mounts = items(container.get("volumeMounts"))
            lacks = not any(at(item, "mountPath") == _MOUNT for item in mounts)
            needed = needed or lacks
            containers.append({**container, "volumeMounts": [*mounts, dict(mount)]} if lacks else container)
        if containers:
            changed[field] = containers
    if needed and present is None:
        source: dict[str, object] = {"defaultMode": 420, "sources": [dict(item) for item in _SOURCES]}
        changed["volumes"] = [*volumes, {"name": name, "projected": source}]
    return changed


def _check(attributes: AdmissionAttributes) -> None:
    spec = mapping(at(attributes.after, "spec"))
    name = text(spec.get("serviceAccountName"))
    if not attributes.subresource and _is_mirror(attributes):
        if name:
            raise attributes.refused("a mirror pod may not reference service accounts")
        if any(True for _ in _secrets(spec, "")):
            raise attributes.refused("a mirror pod may not reference secrets")
        projected = [at(volume, "projected", "sources") for volume in items(spec.get("volumes"))]
        sources = [source for listed in projected for source in items(listed)]
        if any(at(source, "serviceAccountToken") is not None for source in sources):
            raise attributes.refused("a mirror pod may not use ServiceAccountToken volume projections")
        return
    if not name:
        where = f"{attributes.namespace}/{text(at(attributes.after, 'metadata', 'name'))}"
        raise attributes.refused(f"no service account specified for pod {where}")
    account = _account(attributes, name)
    if account.annotations.get(_ENFORCE) not in _TRUE:
        return
    fields = account.to_dict()
    mountable = {text(at(item, "name")) for item in items(fields.get("secrets"))}
    only = "ephemeralContainers" if attributes.subresource else ""
    for secret, where in _secrets(spec, only):
        if secret not in mountable:
            raise attributes.refused(
                f"{where} is not allowed because service account {name} does not reference that secret"
            )
    if only:
        return
    pulled = {text(at(item, "name")) for item in items(fields.get("imagePullSecrets"))}
    for number, item in enumerate(items(spec.get("imagePullSecrets"))):
        if text(at(item, "name")) not in pulled:
            raise attributes.refused(
                f'imagePullSecrets[{number}].name="{text(at(item, "name"))}" is not allowed because service account '
                f"{name} does not reference that imagePullSecret"
            )


def _secrets(spec: Mapping[str, object], only: str) -> Iterator[tuple[str, str]]:
    if not only:
        for volume in items(spec.get("volumes")):
            if at(volume, "secret") is not None:
                secret = text(at(volume, "secret", "secretName"))
                yield secret, f'volume with secret.secretName="{secret}"'
    for field, words in ((only, "ephemeral container"),) if only else _CONTAINERS:
        for container in items(spec.get(field)):
            about = f"{words} {text(at(container, 'name'))}"
            for variable in items(at(container, "env")):
                if at(variable, "valueFrom", "secretKeyRef") is not None:
                    secret = text(at(variable, "valueFrom", "secretKeyRef", "name"))
                    variable_name = text(at(variable, "name"))
                    yield secret, f'{about} with envVar {variable_name} referencing secret.secretName="{secret}"'
            for source in items(at(container, "envFrom")):
                if at(source, "secretRef") is not None:
                    secret = text(at(source, "secretRef", "name"))
                    yield secret, f'{about} with envFrom referencing secret.secretName="{secret}"'


SERVICE_ACCOUNT: Final = (
    Plugin(operations=CREATE, resources=PODS, mutate=_fill, validate=_check),
    Plugin(operations=frozenset({"UPDATE"}), resources=frozenset({"pods/ephemeralcontainers"}), validate=_check),
)
