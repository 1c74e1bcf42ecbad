"""Pages of several processes of one program, merged into one page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast


def merged_metrics(pages: Mapping[str, bytes]) -> bytes:
    """Merge pages in the text format of Prometheus by process. Each sample gets the label ``process``."""
    families: dict[str, list[str]] = {}
    for process, page in pages.items():
        family = ""
        for line in page.decode(errors="replace").splitlines():
            if line.startswith("# ") and len(words := line.split(None, 3)) > 2:
                family = words[2]
                lines = families.setdefault(family, [])
                if line not in lines:
                    lines.append(line)
            elif line and not line.startswith("#"):
                families.setdefault(family, []).append(_labelled(line, process))
    return "".join(f"{line}\n" for lines in families.values() for line in lines).encode()


def _labelled(sample: str, process: str) -> str:
    name, brace, rest = sample.partition("{")
    label = f'process="{process}"'
    if brace and " " not in name:
        return f"{name}{{{label}{'' if rest.startswith('}') else ','}{rest}"
    name, _, value = sample.partition(" ")
    return f"{name}{{{label}}} {value}"


def merged_documents(answers: Iterable[tuple[int, bytes]]) -> tuple[int, bytes]:
    """Merge JSON objects: lists are joined, and other fields come from the first answer."""
    merged: dict[str, Any] = {}
    status, other = 503, b"no process answers\n"
    for each, body in answers:
        if not body.startswith(b"{"):
            other = body if each != 503 else other
            status = each if not merged else status
            continue
        fields: dict[str, Any] = json.loads(body)
        status = each if not merged else min(status, each)
        for name, value in fields.items():
            if isinstance(value, list) and isinstance(merged.get(name), list):
                merged[name] += cast("list[Any]", value)
            else:
                merged.setdefault(name, value)
    return (status, json.dumps(merged).encode()) if merged else (status, other)
