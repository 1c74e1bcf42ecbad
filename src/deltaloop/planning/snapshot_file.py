"""Snapshot files: one JSON object per line, between a line with the format and a line with the number of objects."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import Final

import msgspec

from deltaloop.api.json_values import at, mapping, text
from deltaloop.api.times import format_time, parse_time, utc_now
from deltaloop.planning.reading import FORMAT

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_STEP: Final = 1000


async def write_snapshot(
    path: Path,
    objects: AsyncIterable[dict[str, object]],
    *,
    with_secrets: bool = False,
    progress: Callable[[str, int], object] | None = None,
) -> int:
    """Write objects to a file as they arrive, readable by its owner only, and return their number."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    count = 0
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_encode({"snapshot": FORMAT, "taken": format_time(utc_now())}) + b"\n")
            async for fields in objects:
                kept = fields if with_secrets else without_secret_values(fields)
                file.write(_encode(kept) + b"\n")
                count += 1
                if progress is not None and not count % _STEP:
                    progress("objects read", count)
            file.write(_encode({"end": FORMAT, "objects": count}) + b"\n")
        os.replace(name, path)  # noqa: PTH105 - pathlib would look blocking here, and a rename is not
    except BaseException:
        os.unlink(name)  # noqa: PTH108 - same
        raise
    return count


def taken_at(path: Path) -> float | None:
    """Return the time of a snapshot in seconds since 1970; None for manifests."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        first = file.readline(4096)
    if FORMAT.encode() not in first:
        return None
    taken = text(at(msgspec.json.decode(first), "taken"))
    return parse_time(taken).timestamp() if taken else None


def without_secret_values(fields: dict[str, object]) -> dict[str, object]:
    """Return a Secret with placeholders, which depend only on the place of a value; other objects are returned."""
    if fields.get("kind") != "Secret" or fields.get("apiVersion") != "v1":
        return fields
    metadata = dict(mapping(fields.get("metadata")))
    place = f"{text(metadata.get('namespace'))}/{text(metadata.get('name'))}"
    annotations = {name: value for name, value in mapping(metadata.get("annotations")).items() if name != _LAST_APPLIED}
    if annotations or "annotations" in metadata:
        metadata["annotations"] = annotations
    data = {
        name: base64.b64encode(f"placeholder of {place} {name}".encode()).decode()
        for name in mapping(fields.get("data"))
    }
    return {**fields, "metadata": metadata, **({"data": data} if "data" in fields else {})}
