"""Raises Go modules that are made of Kubernetes' parts: what go.mod says by hand stays, the rest is found anew."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import msgspec
from lab.kube.build import go_command

KUBERNETES: Final = "k8s.io/kubernetes"
_SECONDS: Final = 600.0
_PART: Final = re.compile(r"^\s+(k8s\.io/[a-z-]+) => \./staging/", re.MULTILINE)
_BLOCKS: Final = re.compile(r"^require \(\n(.*?)^\)\n|^require (.*)\n", re.MULTILINE | re.DOTALL)
_REPLACED: Final = re.compile(r"^replace \(\n.*?^\)\n", re.MULTILINE | re.DOTALL)
_DIRECT: Final = re.compile(r"^\s*(k8s\.io/[a-z-]+) v[01]\.\d+\.\d+$", re.MULTILINE)
_TOOL: Final = re.compile(r"^(?:tool |\t)(k8s\.io/[a-z-]+)(?:/\S+)?$", re.MULTILINE)


def library_version(version: str) -> str:
    """Return the version of the libraries that are published with a version of Kubernetes."""
    return version.replace("1.", "0.", 1)


def raised(go_mod: str, version: str, parts: list[str]) -> str:
    """Return a go.mod for another version of Kubernetes, without what ``go mod tidy`` adds.

    Args:
        go_mod: The file as it is.
        version: The version of Kubernetes, such as ``1.36.3``.
        parts: The modules that Kubernetes replaces by folders of its own.
    """
    library = library_version(version)
    required = "".join(block[0] or block[1] for block in _BLOCKS.findall(go_mod))
    kept = _BLOCKS.sub("", go_mod)
    names = dict.fromkeys((*_DIRECT.findall(required), *_TOOL.findall(kept)))
    needed = "".join(f"\t{name} v{version if name == KUBERNETES else library}\n" for name in names)
    lines = "".join(f"\t{part} => {part} v{library}\n" for part in parts)
    kept = _REPLACED.sub(f"replace (\n{lines})\n", kept)
    first, go_line, rest = re.split(r"^(go \S+\n)", kept, maxsplit=1, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", f"{first}{go_line}\nrequire (\n{needed})\n\n{rest}").rstrip("\n") + "\n"


def parts_of(version: str, folder: Path) -> list[str]:
    """Ask Kubernetes' own go.mod which modules it is published in; ``folder`` is where go is run."""
    return _PART.findall((folder_of(KUBERNETES, version, folder) / "go.mod").read_text())


def folder_of(module: str, version: str, folder: Path) -> Path:
    """Download a published module, if it is not there, and return where it is; ``folder`` is where go is run."""
    done = _go(folder, "mod", "download", "-json", f"{module}@v{version}")
    return Path(str(msgspec.json.decode(done, type=dict[str, object])["Dir"]))


def raise_module(folder: Path, version: str, parts: list[str]) -> None:
    """Rewrite go.mod and go.sum of a module."""
    path = folder / "go.mod"
    path.write_text(raised(path.read_text(), version, parts))
    (folder / "go.sum").unlink(missing_ok=True)
    _go(folder, "mod", "tidy")


def _go(folder: Path, *arguments: str) -> bytes:
    command = [go_command() or "go", *arguments]
    return subprocess.run(command, cwd=folder, timeout=_SECONDS, stdout=subprocess.PIPE, check=True).stdout
