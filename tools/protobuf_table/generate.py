"""Rewrite the table of protobuf fields: ``python -m tools.protobuf_table.generate``.

Needs Go 1.26 or newer (``GO`` names another one) and access to Go modules.
"""

from __future__ import annotations

import os
import subprocess

from tools.builtin_tables.generate import definitions, observed, schema_names
from tools.protobuf_table.table import FIELDS

from deltaloop.api import kinds

# What requests carry besides the kinds that are served.
MORE = (
    "v1 DeleteOptions",
    "v1 Status",
    "authentication.k8s.io/v1 SelfSubjectReview",
    "authentication.k8s.io/v1 TokenRequest",
    "authentication.k8s.io/v1 TokenReview",
    "authorization.k8s.io/v1 LocalSubjectAccessReview",
    "authorization.k8s.io/v1 SelfSubjectAccessReview",
    "authorization.k8s.io/v1 SelfSubjectRulesReview",
    "authorization.k8s.io/v1 SubjectAccessReview",
    "autoscaling/v1 Scale",
    "policy/v1 Eviction",
)


def main() -> None:
    """Ask the Go types and write what they say."""
    published = schema_names(definitions())
    found = sorted((kind["group"], kind["version"], kind["kind"]) for kind in observed())
    served = (
        f"{group}/{version} {kind}".removeprefix("/")
        for group, version, kind in found
        if (group, version, kind) in published
    )
    known = (f"{kind.api_version} {kind.kind}" for kind in kinds.BUILT_IN)
    wanted = list(dict.fromkeys((*known, *served, *MORE)))
    made = subprocess.run(
        [os.environ.get("GO", "go"), "run", "."],
        cwd=FIELDS.parent,
        input="\n".join(wanted).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    FIELDS.write_bytes(made.stdout)
    print(f"{FIELDS.name}: {len(made.stdout)} bytes")


if __name__ == "__main__":
    main()
