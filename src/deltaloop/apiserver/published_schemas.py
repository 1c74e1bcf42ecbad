"""The published schemas of the built-in kinds, where the extra ``schemas`` is installed.

They are read from the package ``kubernetes-validate`` when they are first asked for; its code is never run. What a
server says beside them (enums, defaults) is in a data file that ``tools/builtin_tables/observe.py`` writes.
"""

from __future__ import annotations

import gzip
import importlib.util
import logging
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.core.answers.published import PublishedSchemas

EXTRA: Final = "schemas"
_ADDITIONS: Final = "schema_additions.json.gz"
_PACKAGE: Final = "kubernetes_validate"
_log: Final = logging.getLogger("deltaloop.apiserver")


@cache
def published_schemas() -> PublishedSchemas | None:
    """Return the schemas; None without the extra, or if its package has none for our version of Kubernetes.

    A missing version is logged once as a WARNING: the package is there, but too old.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "kubernetes-json-schema" / f"v{MINOR}.0-local"
    try:
        content = (folder / "_definitions.json").read_bytes()
    except OSError:
        _log.warning(
            "kubernetes-validate has no schemas for our Kubernetes: explain shows no fields",
            extra={"kubernetes": MINOR, "extra": EXTRA},
        )
        return None
    packed = resources.files("deltaloop.apiserver").joinpath(_ADDITIONS).read_bytes()
    return PublishedSchemas(msgspec.json.decode(content)["$defs"], msgspec.json.decode(gzip.decompress(packed)))
