"""What a server warns about in objects that it accepts: what is deprecated, ignored, or not what it seems.

Source: Kubernetes pkg/registry (``WarningsOnCreate``, ``WarningsOnUpdate``), pkg/api/service/warnings.go,
pkg/api/{persistentvolume,persistentvolumeclaim,storage,job}.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.pod_warnings import (
    DEPRECATED_LABELS,
    address_warnings,
    claim_spec_warnings,
    node_term_warnings,
    pod_warnings,
)
from deltaloop.apiserver.core.metadata.rules import label_name_problems
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.json_values import at, integer, items, mapping, text, texts

Fields = dict[str, Any]

_HINTS, _MODE = (f"service.kubernetes.io/topology-{word}" for word in ("aware-hints", "mode"))
_CLASS: Final = "kubernetes.io/ingress.class"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_VOLUME_ANNOTATIONS: Final = {
    _BETA_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_VOLUME_SOURCES: Final = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_MANY_COMPLETIONS: Final = 100_000
_MUCH_PARALLELISM: Final = 10_000
_SURPRISING: Final = "which can result in surprising behavior; a DNS label is recommended: "
_TOKENS: Final = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def new_object_warnings(served: ServedResource, fields: Fields) -> tuple[str, ...]:
    """Return what there is to warn about in a new object of a built-in kind."""
    kind = served.type.group_resource
    found = [*_NEW[kind](fields)] if kind in _NEW else []
    return (*found, *(_ALWAYS[kind](fields) if kind in _ALWAYS else ()))


def changed_object_warnings(served: ServedResource, before: Fields, after: Fields) -> tuple[str, ...]:
    """Return what there is to warn about in a changed object; in pods of an owner, if what is wanted of it changed."""
    kind = served.type.group_resource
    found: list[str] = []
    if kind in _TEMPLATES and _generation(before) != _generation(after):
        found += _TEMPLATES[kind](after)
    if kind == "serviceaccounts" and at(before, "metadata", "annotations", _MOUNTABLE) is None:
        found += _account(after)
    if kind == "csidrivers.storage.k8s.io" and _token_requests(before) != _token_requests(after):
        found += _driver(after)
    return (*found, *(_ALWAYS[kind](after) if kind in _ALWAYS else ()))


def _generation(fields: Fields) -> object:
    # That of a DaemonSet counts changes of its template; for all others it is that of what is wanted.
    return at(fields, "metadata", "generation")


def _token_requests(fields: Fields) -> object:
    return at(fields, "spec", "tokenRequests")


def _name_warnings(fields: Fields, used: str = "in Pod names and hostnames") -> Iterator[str]:
    name = text(at(fields, "metadata", "name"))
    wrong = label_name_problems(name)
    if wrong:
        yield f"metadata.name: this is used {used}, {_SURPRISING}[{' '.join(wrong)}]"


def _new_pod(pod: Fields) -> Iterator[str]:
    yield from _name_warnings(pod, "in the Pod's hostname")
    yield from pod_warnings(pod)


def _template(owner: Fields) -> Iterator[str]:
    return pod_warnings(mapping(at(owner, "spec", "template")), "spec.template.")


def _named_template(owner: Fields) -> Iterator[str]:
    yield from _name_warnings(owner)
    yield from _template(owner)


def _pod_template(template: Fields) -> Iterator[str]:
    return pod_warnings(mapping(template.get("template")), "template.")


def _job_spec(spec: Fields, path: str) -> Iterator[str]:
    completions, parallelism = integer(spec.get("completions")), integer(spec.get("parallelism"))
    if spec.get("completionMode") == "Indexed" and completions > _MANY_COMPLETIONS and parallelism > _MUCH_PARALLELISM:
        yield (
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    yield from pod_warnings(mapping(spec.get("template")), f"{path}.template.")


def _job(job: Fields) -> Iterator[str]:
    return _job_spec(mapping(job.get("spec")), "spec")


def _new_job(job: Fields) -> Iterator[str]:
    yield from _name_warnings(job)
    yield from _job(job)


def _cron_job(cron_job: Fields) -> Iterator[str]:
    return _job_spec(mapping(at(cron_job, "spec", "jobTemplate", "spec")), "spec.jobTemplate.spec")


def _new_cron_job(cron_job: Fields) -> Iterator[str]:
    yield from _name_warnings(cron_job)
    yield from _cron_job(cron_job)


def _stateful_set(owner: Fields) -> Iterator[str]:
    spec = mapping(owner.get("spec"))
    for place, claim in enumerate(items(spec.get("volumeClaimTemplates"))):
        yield from claim_spec_warnings(at(claim, "spec"), f"spec.volumeClaimTemplates[{place}]")
    if integer(spec.get("revisionHistoryLimit")) < 0:
        yield (
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )


def _service(service: Fields) -> Iterator[str]:
    spec = mapping(service.get("spec"))
    kind, external = text(spec.get("type")), texts(spec.get("externalIPs"))
    headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if at(service, "metadata", "annotations", _HINTS) is not None:
        yield f"annotation {_HINTS} is deprecated, please use {_MODE} instead"
    if headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for place, address in enumerate(external):
        yield from address_warnings(address, f"spec.externalIPs[{place}]")
    if external and not headless and kind != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings(text(spec.get("loadBalancerIP")), "spec.loadBalancerIP")
    if kind == "ExternalName" and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if kind != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def _volume(volume: Fields) -> Iterator[str]:
    annotations, spec = mapping(at(volume, "metadata", "annotations")), mapping(volume.get("spec"))
    for name, told in _VOLUME_ANNOTATIONS.items():
        if name in annotations:
            yield f"metadata.annotations[{name}]: {told}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    for place, term in enumerate(items(at(spec, "nodeAffinity", "required", "nodeSelectorTerms"))):
        yield from node_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{place}]")
    for source, told in _VOLUME_SOURCES.items():
        if isinstance(spec.get(source), dict):
            yield f"spec.{'storageOS' if source == 'storageos' else source}: {told}"


def _claim(claim: Fields) -> Iterator[str]:
    if at(claim, "metadata", "annotations", _BETA_CLASS) is not None:
        yield f"metadata.annotations[{_BETA_CLASS}]: {_VOLUME_ANNOTATIONS[_BETA_CLASS]}"
    yield from claim_spec_warnings(claim.get("spec"), "spec")


def _ingress(ingress: Fields) -> Iterator[str]:
    annotated = at(ingress, "metadata", "annotations", _CLASS) is not None
    if annotated and at(ingress, "spec", "ingressClassName") is None:
        yield f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def _node(node: Fields) -> Iterator[str]:
    if at(node, "spec", "externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _runtime_class(runtime_class: Fields) -> Iterator[str]:
    for label in mapping(at(runtime_class, "scheduling", "nodeSelector")):
        if label in DEPRECATED_LABELS:
            yield f"scheduling.nodeSelector: {DEPRECATED_LABELS[label]}"


def _storage_class(storage_class: Fields) -> Iterator[str]:
    for place, term in enumerate(items(storage_class.get("allowedTopologies"))):
        for number, expression in enumerate(items(at(term, "matchLabelExpressions"))):
            key = text(at(expression, "key"))
            if key in DEPRECATED_LABELS:
                path = f"allowedTopologies[{place}].matchLabelExpressions[{number}].key"
                yield f"{path}: {DEPRECATED_LABELS[key]}"


def _secret(secret: Fields) -> Iterator[str]:
    """Yield a warning if there is no PEM where TLS needs it; whether key and certificate fit is not looked at."""
    if secret.get("type") != "kubernetes.io/tls":
        return
    for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
        try:
            raw = base64.b64decode(text(at(secret, "data", key)))
        except (binascii.Error, ValueError):
            raw = b""
        if b"-----BEGIN " not in raw:
            yield f"tls: failed to find any PEM data in {what} input"
            return


def _driver(driver: Fields) -> Iterator[str]:
    if items(_token_requests(driver)) and at(driver, "spec", "serviceAccountTokenInSecrets") is None:
        yield _TOKENS


def _new_slice(endpoint_slice: Fields) -> Iterator[str]:
    if endpoint_slice.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"


def _account(account: Fields) -> Iterator[str]:
    if at(account, "metadata", "annotations", _MOUNTABLE) is not None:
        yield (
            f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
            "to mounted secrets"
        )


_Check = Callable[[Fields], Iterator[str]]
_TEMPLATES: Final[Mapping[str, _Check]] = {
    "cronjobs.batch": _cron_job,
    "daemonsets.apps": _template,
    "deployments.apps": _template,
    "jobs.batch": _job,
    "replicasets.apps": _template,
    "replicationcontrollers": _template,
    "statefulsets.apps": _template,
}
_NEW: Final[Mapping[str, _Check]] = {
    "cronjobs.batch": _new_cron_job,
    "csidrivers.storage.k8s.io": _driver,
    "daemonsets.apps": _template,
    "deployments.apps": _named_template,
    "endpointslices.discovery.k8s.io": _new_slice,
    "ingresses.networking.k8s.io": _ingress,
    "jobs.batch": _new_job,
    "pods": _new_pod,
    "podtemplates": _pod_template,
    "replicasets.apps": _named_template,
    "replicationcontrollers": _named_template,
    "serviceaccounts": _account,
    "statefulsets.apps": _template,
}
# With each write, whatever it changes.
_ALWAYS: Final[Mapping[str, _Check]] = {
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "runtimeclasses.node.k8s.io": _runtime_class,
    "secrets": _secret,
    "services": _service,
    "statefulsets.apps": _stateful_set,
    "storageclasses.storage.k8s.io": _storage_class,
}
