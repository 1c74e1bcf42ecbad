"""Volumes of pods and persistent volumes, their mounts, and warnings about overlapping paths.

Source: Kubernetes pkg/apis/core/validation/validation.go; Kubernetes pkg/api/pod/warnings.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds.field_checks import back_step_problems, descending_problems, one_of
from deltaloop.apiserver.core.metadata.rules import invalid_values, subdomain_errors
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    missing,
    not_supported,
    required,
    shown,
)
from deltaloop.schemas.quantity import amount

# Sources of a projected volume: the field with the name, and the kind in warnings.
_LISTED: Final = {"configMap": ("name", "ConfigMap"), "secret": ("name", "Secret"), "downwardAPI": ("", "DownwardAPI")}
_CERTIFICATE_PATHS: Final = {
    "certificateChainPath": "chain",
    "keyPath": "key",
    "credentialBundlePath": "credential bundle",
}
_COMPARED: Final = 64  # more warnings about one path are not useful


class _File(NamedTuple):
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{shown(self.path)} ({self.source})" if self.source else shown(self.path)


def overlapping_path_warnings(volume: Mapping[str, object]) -> Iterator[str]:
    """Yield a warning for each pair of files in a volume of which one hides the other."""
    name = shown(text(volume.get("name")))
    for source, kind, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        described = f"{kind} {shown(text(at(volume, source, key)))}"
        for overlap in _overlaps(_paths(volume.get(source))):
            yield f"volume {name} ({described}): overlapping paths: {overlap}"
    for overlap in _overlaps(_paths(volume.get("downwardAPI"))):
        yield f"volume {name} (DownwardAPI): overlapping paths: {overlap}"
    files: list[_File] = []
    for projection in items(at(volume, "projected", "sources")):
        if not any(is_mapping(value) for value in mapping(projection).values()):
            yield f"volume {name} (Projected) has no sources provided"
        files += _projected(mapping(projection))
    for overlap in _overlaps(files):
        yield f"volume {name} (Projected): overlapping paths: {overlap}"


def _paths(source: object, described: str = "") -> list[_File]:
    return [_File(text(at(item, "path")), described) for item in items(at(source, "items"))]


def _projected(projection: Mapping[str, object]) -> list[_File]:
    for source, (key, kind) in _LISTED.items():
        if at(projection, source, "items"):
            described = f"{kind} {shown(text(at(projection, source, key)))}" if key else kind
            return _paths(projection[source], described)
    if is_mapping(projection.get("serviceAccountToken")):
        return [_File(text(at(projection, "serviceAccountToken", "path")), "ServiceAccountToken")]
    bundle = projection.get("clusterTrustBundle")
    if is_mapping(bundle):
        name = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName")
        return [_File(text(bundle.get("path")), f"ClusterTrustBundle {shown(text(name))}")]
    certificate = mapping(projection.get("podCertificate"))
    return [
        _File(text(certificate[field]), f"PodCertificate {part}")
        for field, part in _CERTIFICATE_PATHS.items()
        if certificate.get(field)
    ]


def _overlaps(files: Iterable[_File]) -> Iterator[str]:
    known: list[_File] = []
    for sent in files:
        file = _File(sent.path.rstrip("/"), sent.source)
        if not file.path:
            continue
        for other in known:
            longer, shorter = f"{file.path}/", f"{other.path}/"
            if longer.startswith(shorter) or shorter.startswith(longer):
                yield f"{file} with {other}"
        if len(known) < _COMPARED:
            known.append(file)


_POD_SPEC: Final = "core.v1.PodSpec"
_ISCSI_NAMES: Final = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[-.a-zA-Z0-9]+(:[^,;*&$|\s]+)"),
    "eui": re.compile("eui.[a-zA-Z0-9]{16}"),
    "naa": re.compile("naa.[a-zA-Z0-9]{32}"),
}
_LONGEST_PORTAL: Final = 64
_MOST_LUN: Final = 255
_LONGEST_TENANT: Final = 64
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32
_BLOCK_SOURCES: Final = ("persistentVolumeClaim", "ephemeral")
# Fields for environment variables, and fields for files in volumes.
_ENV_FIELDS: Final = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_FILE_FIELDS: Final = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
_RESOURCES: Final = tuple(f"{group}.{name}" for group in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))  # fmt: skip # noqa: E501
_DIVISORS: Final = frozenset({"1", *(f"1{unit}{end}" for unit in "MGTPE" for end in ("", "i")), "1k", "1Ki"})
_SUBSCRIPTED: Final = re.compile(r"(.*)\['(.*)'\]")


def volumes_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the volumes of a pod. Only valid volumes can be mounted."""
    for number, volume in enumerate(items(place.fields.get("volumes"))):
        wrong = [*place.errors_below("volumes", volume, number=number)]
        name = text(at(volume, "name"))
        yield from wrong
        if place.is_noted("volume", name):
            yield duplicate(f"{place.below('volumes')}[{number}].name", name)
        elif not wrong:
            place.is_first("volume", name)


def _limit_errors(place: Place) -> Iterator[SchemaError]:
    if amount(place.value) < 0:
        yield forbidden_field(place.path, "SizeLimit field must be a valid resource quantity")


def _made_claim_errors(place: Place) -> Iterator[SchemaError]:
    pod, name = text(at(place.whole, "metadata", "name")), text(place.fields.get("name"))
    if at(place.whole, "kind") == "Pod" and is_mapping(place.fields.get("ephemeral")) and pod and name:
        for _ in subdomain_errors(f"{pod}-{name}", ""):
            yield invalid_value(place.below("name"), name, f'PVC name "{pod}-{name}": must be a subdomain')


def _iscsi_errors(place: Place) -> Iterator[SchemaError]:
    source = place.fields
    for name, called in (("iqn", "iqn"), ("initiatorName", "initiatorname")):
        value = text(source.get(name))
        form = _ISCSI_NAMES.get(value[:3])
        if source.get(name) is not None and (value or name != "iqn") and not (form and form.search(value)):
            yield invalid_value(place.below(called), value, "must be valid format")
    authenticated = source.get("chapAuthDiscovery") is True or source.get("chapAuthSession") is True
    if authenticated and not is_mapping(source.get("secretRef")):
        yield required(place.below("secretRef"))
    holder = place.holder.value if place.holder is not None else None
    name = text(at(holder, "name")) or text(at(place.whole, "metadata", "name"))
    if source.get("initiatorName") is not None and len(f"{name}:{text(source.get('targetPortal'))}") > _LONGEST_PORTAL:
        yield invalid_value(place.below("targetportal"), source.get("targetPortal"), "must be shorter")


def _fc_errors(place: Place) -> Iterator[SchemaError]:
    source, lun = place.fields, place.fields.get("lun")
    names, path = items(source.get("targetWWNs")), place.below("targetWWNs")
    if not names and not items(source.get("wwids")):
        yield required(path, "must specify either targetWWNs or wwids, but not both")
    if names and items(source.get("wwids")):
        yield invalid_value(path, names, "targetWWNs and wwids can not be specified simultaneously")
    if names and lun is None:
        yield required(place.below("lun"), "lun is required if targetWWNs is specified")
    elif names and not 0 <= integer(lun) <= _MOST_LUN:
        yield invalid_value(place.below("lun"), lun, f"must be between 0 and {_MOST_LUN}, inclusive")


def _flocker_errors(place: Place) -> Iterator[SchemaError]:
    name, uid = text(place.fields.get("datasetName")), text(place.fields.get("datasetUUID"))
    if not name and not uid:
        yield required(place.path, "one of datasetName and datasetUUID is required")
    if name and uid:
        yield invalid_value(place.path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid_value(place.below("datasetName"), name, "must not contain '/'")


def _quobyte_errors(place: Place) -> Iterator[SchemaError]:
    registry, path = text(place.fields.get("registry")), place.below("registry")
    words = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        yield required(path, words)
    elif len(text(place.fields.get("tenant"))) > _LONGEST_TENANT:
        yield required(place.below("tenant"), "must be a UUID and may not exceed a length of 64 characters")
    elif any(pair.count(":") != 1 for pair in registry.split(",")):
        yield invalid_value(path, registry, words)


def _flex_errors(place: Place) -> Iterator[SchemaError]:
    for key in mapping(place.fields.get("options")):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            text_ = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid_value(f"{place.below('options')}[{key}]", key, text_)


def _azure_disk_errors(place: Place) -> Iterator[SchemaError]:
    kind, uri, path = place.fields.get("kind"), text(place.fields.get("diskURI")), place.below("diskURI")
    start = "/subscriptions/" if kind == "Managed" else "https://"
    if kind is not None and not uri.startswith(start):
        yield SchemaError(path, "FieldValueNotSupported", f'Unsupported value: "{uri}": must start with {start}')


def _file_errors(place: Place) -> Iterator[SchemaError]:
    field, resource = place.fields.get("fieldRef"), place.fields.get("resourceFieldRef")
    if is_mapping(field):
        yield from _field_reference_errors(field, place.below("fieldRef"), _FILE_FIELDS)
        if is_mapping(resource):
            text_ = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(place.path, "resource", text_)
    elif is_mapping(resource):
        yield from _resource_reference_errors(resource, place.below("resourceFieldRef"), named=True)
    else:
        yield required(place.path, "one of fieldRef and resourceFieldRef is required")


def _variable_reference_errors(place: Place) -> Iterator[SchemaError]:
    field, resource = place.fields.get("fieldRef"), place.fields.get("resourceFieldRef")
    if is_mapping(field):
        yield from _field_reference_errors(field, place.below("fieldRef"), _ENV_FIELDS)
    if is_mapping(resource):
        yield from _resource_reference_errors(resource, place.below("resourceFieldRef"), named=False)


def _field_reference_errors(reference: object, path: str, known: tuple[str, ...]) -> Iterator[SchemaError]:
    version, field = text(at(reference, "apiVersion")), text(at(reference, "fieldPath"))
    if not version or not field:
        yield required(f"{path}.{'fieldPath' if version else 'apiVersion'}")
        return
    found = _SUBSCRIPTED.fullmatch(field)
    base, key = (found[1], found[2]) if found else (field, "")
    labels = base in ("metadata.labels", "metadata.annotations")
    if version != "v1" or not (labels if found else field in {*_ENV_FIELDS, *_FILE_FIELDS}):
        text_ = f"error converting fieldPath: field label not supported: {field}"
        yield invalid_value(f"{path}.fieldPath", field, text_)
    elif found:
        from_key = key.lower() if base == "metadata.annotations" else key
        yield from invalid_values(path, key, label_key_problems(from_key))
    elif field not in known:
        yield not_supported(f"{path}.fieldPath", field, sorted(known))


def _resource_reference_errors(reference: object, path: str, *, named: bool) -> Iterator[SchemaError]:
    resource, divisor = text(at(reference, "resource")), at(reference, "divisor")
    huge = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if named and not at(reference, "containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not huge:
        yield not_supported(f"{path}.resource", resource, sorted(_RESOURCES))
    if amount(divisor) == 0 or not (huge or resource in _RESOURCES):
        return
    allowed = ("1m", "1") if resource.endswith(".cpu") else _DIVISORS
    if str(divisor) not in allowed:
        yield invalid_value(f"{path}.divisor", resource, "only some powers are supported as a divisor")


def _projected_errors(place: Place) -> Iterator[SchemaError]:
    paths: list[str] = []
    for number, source in enumerate(map(mapping, items(place.fields.get("sources")))):
        where = f"{place.below('sources')}[{number}]"
        sources = [name for name, value in source.items() if is_mapping(value)]
        if len(sources) > 1:
            yield forbidden_field(where, "may not specify more than 1 volume type per source")
        yield from _token_errors(source.get("serviceAccountToken"), f"{where}.serviceAccountToken", place.path)
        yield from _bundle_errors(source.get("clusterTrustBundle"), f"{where}.clusterTrustBundle")
        for name in ("secret", "configMap", "downwardAPI"):
            paths += [text(at(item, "path")) for item in items(at(source, name, "items"))]
        if is_mapping(source.get("clusterTrustBundle")):
            paths.append(text(at(source, "clusterTrustBundle", "path")) or "/")
        certificate = source.get("podCertificate")
        files = [text(at(certificate, f"{name}Path")) for name in ("credentialBundle", "key", "certificateChain")]
        paths += files
        if is_mapping(certificate) and not any(files):
            text_ = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
            yield required(f"{where}.podCertificate", text_)
    for number, path in enumerate(paths):
        if path and path in paths[:number]:
            yield invalid_value(place.path, path, "conflicting duplicate paths")


def _token_errors(token: object, path: str, volume: str) -> Iterator[SchemaError]:
    seconds = at(token, "expirationSeconds")
    if not is_mapping(token):
        return
    if seconds is None:
        yield required(f"{path}.expirationSeconds")
    elif integer(seconds) < _SHORTEST_TOKEN:
        yield invalid_value(f"{path}.expirationSeconds", seconds, "may not specify less than 10 minutes")
    elif integer(seconds) > _LONGEST_TOKEN:
        yield invalid_value(f"{path}.expirationSeconds", seconds, "may not specify more than 2^32 seconds")
    file = text(token.get("path"))
    if not file:
        yield required(f"{volume}.path")
    elif descending_problems(file) or (file.startswith("..") and not file.startswith("../")):
        yield invalid_value(f"{volume}.path", file, "must be a relative path")


def _bundle_errors(bundle: object, path: str) -> Iterator[SchemaError]:
    name, signer = at(bundle, "name"), at(bundle, "signerName")
    if not is_mapping(bundle):
        return
    if name is not None and signer is not None:
        yield invalid_value(path, None, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required(f"{path}.name", "must be a valid object name")
        last = text(name).rpartition(":")[2]
        yield from subdomain_errors(last, f"{path}.name")
        if bundle.get("labelSelector") is not None:
            yield invalid_value(f"{path}.labelSelector", None, "labelSelector must be unset if name is specified")
    elif signer is None:
        yield required(path, "either name or signerName must be specified")


def _mounted_errors(place: Place) -> Iterator[SchemaError]:
    name, path = text(place.fields.get("name")), place.below("name")
    if not name:
        yield required(path)
    if not place.within(_POD_SPEC).is_noted("volume", name):
        yield missing(path, name)
    holder = place.holder.fields if place.holder is not None else {}
    devices = [mapping(device) for device in items(holder.get("volumeDevices"))]
    mount_path = place.fields.get("mountPath")
    if any(device.get("name") == name for device in devices):
        yield invalid_value(path, name, "must not already exist in volumeDevices")
    if any(device.get("devicePath") == mount_path for device in devices):
        yield invalid_value(place.below("mountPath"), mount_path, "must not already exist as a path in volumeDevices")
    listed = place.path.rpartition("[")[0]
    for field in ("subPath", "subPathExpr"):
        value = text(place.fields.get(field))
        yield from invalid_values(f"{listed}.{field}", value, descending_problems(value))
    if place.fields.get("subPath") and place.fields.get("subPathExpr"):
        text_ = "subPathExpr and subPath are mutually exclusive"
        yield invalid_value(place.below("subPathExpr"), place.fields["subPathExpr"], text_)
    yield from _mount_mode_errors(place, holder, listed)


def _mount_mode_errors(place: Place, holder: Mapping[str, object], listed: str) -> Iterator[SchemaError]:
    propagation, recursive = place.fields.get("mountPropagation"), place.fields.get("recursiveReadOnly")
    path = f"{listed}.mountPropagation"
    if propagation is not None:
        yield from one_of(propagation, path, ("Bidirectional", "HostToContainer", "None"))
    if propagation == "Bidirectional" and at(holder, "securityContext", "privileged") is not True:
        yield forbidden_field(path, "Bidirectional mount propagation is available only to privileged containers")
    path = f"{listed}.recursiveReadOnly"
    if recursive in ("Enabled", "IfPossible"):
        if place.fields.get("readOnly") is not True:
            yield forbidden_field(path, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            yield forbidden_field(path, "may only be specified when mountPropagation is None or not specified")
    elif recursive is not None:
        yield from one_of(recursive, path, ("Disabled", "Enabled", "IfPossible"))


def _mount_path_errors(place: Place) -> Iterator[SchemaError]:
    if not place.within("core.v1.Container", "core.v1.EphemeralContainer").is_first("mount", place.text):
        yield invalid_value(place.path, place.text, "must be unique")


def _device_errors(place: Place) -> Iterator[SchemaError]:
    device, container = place.fields, place.within("core.v1.Container", "core.v1.EphemeralContainer")
    name, path = text(device.get("name")), text(device.get("devicePath"))
    volumes = items(at(place.within(_POD_SPEC).value, "volumes"))
    found = next((mapping(volume) for volume in volumes if at(volume, "name") == name), None)
    if name and not container.is_first("device", name):
        yield invalid_value(place.below("name"), name, "must be unique")
    if found is None or not place.within(_POD_SPEC).is_noted("volume", name):
        yield missing(place.below("name"), name)
    elif not any(is_mapping(found.get(source)) for source in _BLOCK_SOURCES):
        text_ = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield invalid_value(place.below("name"), name, text_)
    if path and back_step_problems(path):
        yield invalid_value(place.below("devicePath"), path, "can not contain backsteps ('..')")
    elif not container.is_first("device path", path):
        yield invalid_value(place.below("devicePath"), path, "must be unique")
    mounts = items(at(container.value, "volumeMounts"))
    for field, own, other in (("name", "name", name), ("devicePath", "mountPath", path)):
        if any(at(mount, own) == other for mount in mounts):
            yield invalid_value(place.below(field), other, "must not already exist in volumeMounts")


def _claim_reference_errors(place: Place) -> Iterator[SchemaError]:
    pod, name = place.whole, place.beside("name")
    made = {
        f"{text(at(pod, 'metadata', 'name'))}-{text(at(volume, 'name'))}"
        for volume in items(at(place.within(_POD_SPEC).value, "volumes"))
        if is_mapping(at(volume, "ephemeral"))
    }
    if at(pod, "kind") == "Pod" and name and place.text in made:
        text_ = "must not reference a PVC that gets created for an ephemeral volume"
        yield invalid_value(place.path, place.text, text_)


def _empty_directory_errors(place: Place) -> Iterator[SchemaError]:
    volumes = items(at(place.within(_POD_SPEC).value, "volumes"))
    found = next((volume for volume in volumes if at(volume, "name") == place.value), None)
    if found is None:
        yield missing(place.path, place.value)
    elif not is_mapping(at(found, "emptyDir")):
        yield invalid_value(place.path, place.value, "referenced volume must be of type emptyDir")


def tokens_without_account(pod: Mapping[str, object]) -> Iterator[SchemaError]:
    if at(pod, "spec", "serviceAccountName"):
        return
    for number, volume in enumerate(items(at(pod, "spec", "volumes"))):
        for place, source in enumerate(items(at(volume, "projected", "sources"))):
            if is_mapping(at(source, "serviceAccountToken")):
                path = f"spec.volumes[{number}].projected.sources[{place}].serviceAccountToken"
                yield forbidden_field(path, "must not be specified when serviceAccountName is not set")


VOLUME_CHECKS: Final[Mapping[str, Check]] = {
    "azure_disk": _azure_disk_errors,
    "claim_of_pod": _claim_reference_errors,
    "downward_file": _file_errors,
    "empty_directory": _empty_directory_errors,
    "fc": _fc_errors,
    "flex_options": _flex_errors,
    "flocker": _flocker_errors,
    "iscsi": _iscsi_errors,
    "made_claim": _made_claim_errors,
    "mount_path": _mount_path_errors,
    "mounted_volume": _mounted_errors,
    "projected": _projected_errors,
    "size_limit": _limit_errors,
    "quobyte": _quobyte_errors,
    "variable_reference": _variable_reference_errors,
    "volume_device": _device_errors,
    "volumes": volumes_errors,
}
