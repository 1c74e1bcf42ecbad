"""Checks of the journals of all members, and of the order in which the server accepted writes."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltaloop.api.shard_selector import shard_hash
from deltaloop.sharding.core.shard_map import ShardMap


@dataclass
class Accepted:
    """Accepted changes of the map, and accepted writes of controllers, by resource version."""

    maps: list[tuple[int, ShardMap]] = field(default_factory=list[tuple[int, ShardMap]])
    writes: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])

    def by_former_owners(self) -> list[tuple[int, str, str]]:
        """Return the writes whose member did not own the range in the newest earlier map."""
        versions = [version for version, _ in self.maps]
        found: list[tuple[int, str, str]] = []
        for version, namespace, uid in self.writes:
            place = bisect_left(versions, version) - 1
            if place >= 0 and self.maps[place][1].find(shard_hash(namespace)).owner != uid:
                found.append((version, namespace, uid))
        return found


def entries(journals: Iterable[Path]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for journal in journals:
        for line in journal.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:  # the process was killed during the write
                continue
    return sorted(found, key=lambda entry: entry["at"])


def reconciled_twice(journal: Sequence[Mapping[str, Any]], stopped_at: Mapping[str, Sequence[float]]) -> list[str]:
    """Return keys that two members reconciled at a time. A reconcile ends when its process is stopped or killed."""
    runs: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    running: dict[tuple[str, str], float] = {}
    for entry in journal:
        at = entry["by"], entry.get("key", "")
        if entry["what"] == "begin":
            running[at] = entry["at"]
        elif entry["what"] == "end" and at in running:
            runs[at[1]].append((running.pop(at), entry["at"], at[0]))
    for (by, key), began in running.items():
        runs[key].append((began, float("inf"), by))
    found: list[str] = []
    for key, spans in runs.items():
        cut = [
            (began, min([end, *(at for at in stopped_at.get(by, ()) if at >= began)]), by)
            for began, end, by in sorted(spans)
        ]
        for place, (_, end, by) in enumerate(cut):
            later = [each for each in cut[place + 1 : place + 20] if each[0] < end and each[2] != by]
            found += [f"{key}: {by} and {each[2]}" for each in later]
    return found


def gaps(journal: Sequence[Mapping[str, Any]], namespaces: Sequence[str]) -> list[tuple[float, float, str]]:
    """Return the times without an owner of each namespace, as (begin, seconds, former owner)."""
    owner: dict[str, str] = {}
    lost: dict[str, tuple[float, str]] = {}
    found: list[tuple[float, float, str]] = []
    numbers = {namespace: shard_hash(namespace) for namespace in namespaces}
    for entry in journal:
        if entry["what"] != "owns":
            continue
        bounds = [(int(start, 16), int(end, 16)) for start, end in entry["ranges"]]
        for namespace, number in numbers.items():
            owns = any(start <= number < end for start, end in bounds)
            if owns:
                if namespace in lost:
                    since, before = lost.pop(namespace)
                    found.append((since, entry["at"] - since, before))
                owner[namespace] = entry["by"]
            elif owner.get(namespace) == entry["by"]:
                lost[namespace] = entry["at"], entry["by"]
                del owner[namespace]
    return found
