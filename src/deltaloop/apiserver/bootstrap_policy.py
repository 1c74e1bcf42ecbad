"""The roles and bindings that exist from the start where RBAC is on: those of a real server.

The data file is made by ``tools/bootstrap_policy`` from what a real kube-apiserver has before anybody asks it for
something. It is a part of the code, and read with it. ``admin``, ``edit`` and ``view`` have no rules of their own: they
select roles by label (``core/rbac.py``).
"""

from __future__ import annotations

import gzip
from importlib import resources
from typing import Any, Final

import msgspec

_DATA: Final = "bootstrap_policy.json.gz"


def bootstrap_policy() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return what there is from the start: plural and object, without uid and times."""
    packed = resources.files("deltaloop.apiserver").joinpath(_DATA).read_bytes()
    content: dict[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    policy: dict[str, list[dict[str, Any]]] = content["policy"]
    return tuple((plural, fields) for plural, objects in policy.items() for fields in objects)
