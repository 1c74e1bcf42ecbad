"""Objects that exist from the start, as data: roles and bindings where RBAC is on, and what flow control is made of.

The data files are made by ``tools/first_objects`` from what a real kube-apiserver has before anybody asks it for
something. They are a part of the code, and read with it. ``admin``, ``edit`` and ``view`` have no rules of their own:
they select roles by label (``core/access/rbac.py``).
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any

import msgspec


def bootstrap_policy() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the roles and bindings: the path of the collection and the object, without uid and times."""
    return _read("bootstrap_policy.json.gz")


def flow_control() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the FlowSchemas and PriorityLevelConfigurations, in the same form."""
    return _read("flow_control.json.gz")


@cache
def _read(name: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    packed = resources.files("deltaloop.apiserver").joinpath(name).read_bytes()
    content: dict[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    collections: dict[str, list[dict[str, Any]]] = content["objects"]
    return tuple((path, fields) for path, objects in collections.items() for fields in objects)
