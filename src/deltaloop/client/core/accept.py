"""Build the Accept headers of lists and watches.

Source: Kubernetes API concepts, "Metadata-only fetches"; KEP-5958 (``drop``).
"""

from __future__ import annotations

from typing import Final

_JSON: Final = "application/json"
_LIST: Final = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_WATCH: Final = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_DROP: Final = ";drop=metadata.managedFields"


def list_accept(*, metadata_only: bool, drop_managed_fields: bool) -> str:
    return _accept(_LIST if metadata_only else "", _DROP if drop_managed_fields else "")


def watch_accept(*, metadata_only: bool, drop_managed_fields: bool) -> str:
    """Return the Accept header of a watch or of a streamed list."""
    return _accept(_WATCH if metadata_only else "", _DROP if drop_managed_fields else "")


def _accept(form: str, drop: str) -> str:
    # Both parameters, the form alone, the drop alone, and plain JSON, without duplicates.
    choices = dict.fromkeys((f"{_JSON}{form}{drop}", f"{_JSON}{form}" if drop else _JSON, f"{_JSON}{drop}", _JSON))
    return ",".join(choices)
