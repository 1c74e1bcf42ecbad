"""The normal form of what a server holds and of what programs print: without what is the same on no two runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from deltaloop.api.json_values import items, mapping

# What Kubernetes makes random names of: no vowels, nothing that looks like something else.
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_TEXTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    # Before the rest: any number may look like a minute, a port or a time.
    (re.compile(r"(/(?:LIVE|MERGED)-)\d+/"), r"\1<random>/"),
    (re.compile("(-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?)+"), "<certificates>\n"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d{4} UTC|Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(\d+ )?\w{3} +[\d: ]+( [+-]\d{4}| \d{4}| UTC)*"), "<time>"),
    # Pods of a ReplicaSet, also where only their names are left: the first part is a hash, which is the same.
    (re.compile(rf"\b((?:[a-z0-9]+-)+[a-f0-9bcdfghjklmnpqrstvwxz2456789]{{8,10}})-{_RANDOM}\b"), r"\1-<random>"),
    # A CronJob's Job is named by the minute.
    (re.compile(rf"\b(\w+)-\d{{8}}-{_RANDOM}\b"), r"\1-<minute>-<random>"),
    (re.compile(r"\b(\w+)-\d{8}\b"), r"\1-<minute>"),
    (re.compile(r"\b(modifiedAt=)\d{10}\b"), r"\1<time>"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "<ip>"),
    (re.compile(r"https?://127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"\b3[012]\d{3}\b"), "<port>"),
)
_CANCELLED: Final = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ .*context canceled")
_HIDDEN: Final = frozenset({"uid", "resourceVersion", "selfLink"})
# Written in the order in which several writers, or a map of Go's, came to it.
_UNORDERED: Final = frozenset({"items", "conditions", "endpoints", "addresses", "subsets", "ownerReferences", "taints"})


def normal_text(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a text without times, uids, random names, addresses and ports.

    Args:
        text: What a program printed, or a string of an object.
        names: Words that stand for others, such as a random name of this run.
    """
    for name, stands_for in sorted((names or {}).items(), reverse=True):
        text = text.replace(name, stands_for)
    for pattern, replacement in _TEXTS:
        text = pattern.sub(replacement, text)
    return text


def normal_lines(text: str, names: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines of a text, without what a Go client logs about a stream that it ended itself."""
    lines = [line.rstrip() for line in normal_text(text, names).splitlines()]
    return [line for line in lines if not _CANCELLED.match(line)]


def normal_table(text: str, names: Mapping[str, str] | None = None) -> list[str]:
    """Return the lines of a table, with single spaces and without ages, in an order of their own."""
    lines = [re.sub(r"\b(?:\d+[dhms])+\b(?: ago)?", "<age>", line) for line in normal_text(text, names).splitlines()]
    return sorted(" ".join(line.split()) for line in lines if line.strip())


def normal_object(value: Any, names: Mapping[str, str] | None = None) -> Any:
    """Return the normal form of an object: what two runs on equal servers have in common."""
    if isinstance(value, str):
        return normal_text(value, names)
    if _is(list, value):
        return [normal_object(item, names) for item in items(value)]
    if not _is(dict, value):
        # A port that the server chose, wherever it stands.
        return "<port>" if isinstance(value, int) and 30000 <= value <= 32767 else value
    result: dict[str, Any] = {}
    for key, item in mapping(value).items():
        if key in _HIDDEN and isinstance(item, str):
            result[key] = f"<{key}>" if item else ""
        elif key == "managedFields":
            result[key] = _owners([*map(mapping, items(item))], names)
        elif key in _UNORDERED and _is(list, item):
            result[key] = sorted((normal_object(each, names) for each in items(item)), key=_sort_key)
        else:
            result[normal_text(key, names)] = normal_object(item, names)
    return result


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind)


def _owners(entries: list[dict[str, Any]], names: Mapping[str, str] | None) -> dict[str, Any]:
    """Return who owns what, by who it is."""
    found: dict[str, Any] = {}
    for entry in entries:
        who = " ".join(str(entry.get(field, "-")) for field in ("manager", "operation", "apiVersion", "subresource"))
        if entry.get("manager") == "kube-scheduler":
            continue  # it writes into a Pod's status if the Pod had to wait, such as for its claim
        paths = field_paths(normal_object(entry.get("fieldsV1", {}), names))
        # Whether a time changes with what it is about depends on when a second ends.
        if left := sorted(path for path in paths if not path.endswith("/f:lastTransitionTime")):
            found[who] = left
    return found


def field_paths(fields: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the paths of a field set, such as ``f:spec/f:replicas``."""
    found: list[str] = []
    for key, below in fields.items():
        path = f"{prefix}/{key}".lstrip("/")
        found += field_paths(below, path) if below else [path]
    return found


def _sort_key(item: Any) -> str:
    fields = mapping(item)
    named = next((str(fields[name]) for name in ("type", "name", "kind") if isinstance(fields.get(name), str)), "")
    return named + json.dumps(item, sort_keys=True)


def random_names(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what stands for the names that the server made up."""
    found: dict[str, str] = {}
    for item in objects:
        metadata = item["metadata"]
        prefix, name = metadata.get("generateName"), metadata["name"]
        if prefix and re.fullmatch(re.escape(prefix) + _RANDOM, name):
            # The minute of a CronJob may be before it.
            found[name] = normal_text(prefix) + "<random>"
    return found
