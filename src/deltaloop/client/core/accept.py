"""Which form of objects a list or a watch asks for, as its Accept header says.

Each form is named in the order of preference, the plain object last: some servers behind the aggregation layer know no
other. A parameter that a server does not know is ignored by kube-apiserver, and makes another server take the last one.

Source: Kubernetes API concepts, "Metadata-only fetches"; KEP-5958 (``drop``).
"""

from __future__ import annotations

from typing import Final

_JSON: Final = "application/json"
_LIST: Final = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_WATCH: Final = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_DROP: Final = ";drop=metadata.managedFields"


def list_accept(*, metadata_only: bool, drop_managed_fields: bool) -> str:
    """Return the Accept header of a list."""
    return _accept(_LIST if metadata_only else "", _DROP if drop_managed_fields else "")


def watch_accept(*, metadata_only: bool, drop_managed_fields: bool) -> str:
    """Return the Accept header of a watch, streamed lists among them."""
    return _accept(_WATCH if metadata_only else "", _DROP if drop_managed_fields else "")


def _accept(form: str, drop: str) -> str:
    # Each once: the whole of both, one of both, nothing.
    choices = dict.fromkeys((f"{_JSON}{form}{drop}", f"{_JSON}{form}" if drop else _JSON, f"{_JSON}{drop}", _JSON))
    return ",".join(choices)
