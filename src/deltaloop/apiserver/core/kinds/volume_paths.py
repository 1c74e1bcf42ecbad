"""Warnings about files of one volume whose paths overlap.

Source: Kubernetes pkg/api/pod/warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from deltaloop.api.json_values import at, is_mapping, items, mapping, text
from deltaloop.schemas.checking import shown

# Source of a projected volume: the field of its name, and how warnings call it.
_LISTED: Final = {"configMap": ("name", "ConfigMap"), "secret": ("name", "Secret"), "downwardAPI": ("", "DownwardAPI")}
_CERTIFICATE_PATHS: Final = {
    "certificateChainPath": "chain",
    "keyPath": "key",
    "credentialBundlePath": "credential bundle",
}
_COMPARED: Final = 64  # a warning about one path of so many has no reader


class _File(NamedTuple):
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f"{shown(self.path)} ({self.source})" if self.source else shown(self.path)


def overlapping_path_warnings(volume: Mapping[str, object]) -> Iterator[str]:
    """Yield a warning for each two files of a volume of which one hides the other."""
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
