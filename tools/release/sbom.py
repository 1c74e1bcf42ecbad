"""Write ``deltaloop.cdx.json``, the bill of materials that the wheel contains (CycloneDX 1.6, PEP 770).

The wheel bundles data of Kubernetes and no packages. The required packages have the versions of ``constraints.txt``,
with which this version was tested. ``python -m tools.release.sbom`` writes the file, and `make generate` runs it.
"""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from tools.install import LOCK
from tools.release.checkout import ROOT, version

from deltaloop.api.kubernetes_version import KUBERNETES

FILE: Final = Path(__file__).with_name("deltaloop.cdx.json")
# Texts of packages without an SPDX expression.
_SPDX: Final = (
    ("MIT OR Apache", "MIT OR Apache-2.0"),
    ("Mozilla", "MPL-2.0"),
    ("ISC", "ISC"),
    ("MIT", "MIT"),
    ("BSD 2", "BSD-2-Clause"),
    ("BSD", "BSD-3-Clause"),
    ("Apache", "Apache-2.0"),
    ("PSF", "PSF-2.0"),
    ("Python Software", "PSF-2.0"),
)


def canonical(name: str) -> str:
    """Return the normalized name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """Return the versions of the lock file."""
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ \\]+)", LOCK.read_text(), re.MULTILINE))


def license_of(distribution: metadata.Distribution) -> str:
    """Return the SPDX expression of a package, or an empty text."""
    read = distribution.metadata
    if expression := read.json.get("license_expression"):
        return str(expression)
    texts = [*read.get_all("License", []), *(each for each in read.get_all("Classifier", []) if "License" in each)]
    return next((spdx for text in texts for word, spdx in _SPDX if word in text[:100]), "")


def required(name: str) -> set[str]:
    """Return the names of the packages that a package requires without extras."""
    found = [Requirement(line) for line in metadata.requires(name) or ()]
    return {canonical(each.name) for each in found if each.marker is None or each.marker.evaluate({"extra": ""})}


def bill() -> dict[str, Any]:
    """Return the bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [each for extra in project["optional-dependencies"].values() for each in extra]
    always = {canonical(Requirement(each).name) for each in project["dependencies"]}
    graph = {"deltaloop": always | {canonical(Requirement(each).name) for each in optional}}
    while missing := {name for needs in graph.values() for name in needs} - {*graph}:
        graph.update({name: required(name) for name in missing})
    core = {*always}
    while more := {name for each in core for name in graph[each]} - core:
        core |= more
    versions = {**locked(), "deltaloop": version()}
    reference = {name: f"pkg:pypi/{name}@{versions[name]}" for name in graph}

    def component(name: str) -> dict[str, Any]:
        spdx = license_of(metadata.distribution(name))
        found = {"type": "library", "bom-ref": reference[name], "name": name, "version": versions[name]}
        return {**found, "purl": reference[name], "licenses": [{"expression": spdx}]}

    kubernetes = f"pkg:github/kubernetes/kubernetes@v{KUBERNETES}"
    data = {
        "type": "data",
        "bom-ref": kubernetes,
        "name": "kubernetes",
        "version": KUBERNETES,
        "purl": kubernetes,
        "description": "Tables of the built-in kinds, made from the types that Kubernetes publishes",
        "licenses": [{"expression": "Apache-2.0"}],
    }
    packages = [
        {**component(name), "scope": "required" if name in core else "optional"}
        for name in sorted(graph)
        if name != "deltaloop"
    ]
    needs = {reference[name]: sorted(reference[each] for each in graph[name]) for name in sorted(graph)}
    needs[reference["deltaloop"]].append(kubernetes)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component("deltaloop")},
        "components": [data, *packages],
        "dependencies": [{"ref": name, "dependsOn": each} for name, each in needs.items()],
    }


def text() -> str:
    """Return the text of the file."""
    return json.dumps(bill(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
