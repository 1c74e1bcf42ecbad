"""Build kube-apiserver and etcd, once for each version, into a cache outside the tree: ``python -m lab.kube.build``.

Each has a small Go module here whose ``tool`` line names it; go.mod decides its version, go.sum what is let in. It
takes some ten minutes on two cores and about 3 GB of disk in Go's own caches. ``DELTALOOP_GO`` names the go command.

``--version 1.33.13`` builds another kube-apiserver, beside the same etcd: a copy of the module in build/kube, raised or
lowered to it, whose go.sum Go finds. ``KUBEBUILDER_ASSETS`` then names the folder that is printed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from deltaloop.testing.servers.control_plane import ControlPlaneAssets, ControlPlaneError, cache_folder, find_assets

HERE = Path(__file__).parent
OTHERS = HERE.parents[1] / "build" / "kube"
SECONDS = 3600.0
_REQUIREMENT = r"^\s*(?:require )?{} (v\d+\.\d+\.\d+)"


@dataclass(frozen=True)
class Program:
    """One program: where its module is, what it is built of, and what go.mod calls the module that has its version."""

    name: str
    folder: Path
    package: str
    module: str

    @property
    def version(self) -> str:
        found = re.search(
            _REQUIREMENT.format(re.escape(self.module)), (self.folder / "go.mod").read_text(), re.MULTILINE
        )
        assert found is not None, f"{self.folder}/go.mod requires no {self.module}"
        return found[1]

    def linker_flags(self) -> str:
        flags = "-s -w"
        if self.module == "k8s.io/kubernetes":
            # Built outside its own tree, the server does not know its version; kubectl and others ask for it.
            major, minor = self.version.removeprefix("v").split(".")[:2]
            for name, value in (("gitVersion", self.version), ("gitMajor", major), ("gitMinor", minor)):
                flags += f" -X k8s.io/component-base/version.{name}={value}"
        return flags


KUBE_APISERVER = Program(
    "kube-apiserver", HERE / "apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes"
)
ETCD = Program("etcd", HERE / "etcd_3_6", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3")


def go_command() -> str | None:
    """Find Go: DELTALOOP_GO, the PATH, the place where its installer puts it."""
    return os.environ.get("DELTALOOP_GO") or shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


def build_command(go: str, program: Program, target: Path) -> list[str]:
    return [go, "build", "-trimpath", "-ldflags", program.linker_flags(), "-o", str(target), program.package]


def build(go: str, program: Program, folder: Path) -> Path:
    """Build one program into a folder, unless it is there."""
    target = folder / program.name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    half_done = folder / f"{program.name}.{os.getpid()}.new"
    print(f"building {program.name} {program.version} ...", flush=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    command = build_command(go, program, half_done)
    try:
        subprocess.run(command, cwd=program.folder, env=environment, timeout=SECONDS, check=True)
        half_done.rename(target)
    finally:
        half_done.unlink(missing_ok=True)
    return target


def of_version(version: str) -> Program:
    """Return kube-apiserver of another version, with a module that is made for it; needs Go's module proxy."""
    folder = OTHERS / f"v{version}"
    if not (folder / "go.sum").exists():
        from tools.kubernetes.go_modules import parts_of, raise_module

        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(KUBE_APISERVER.folder / "go.mod", folder / "go.mod")
        raise_module(folder, version, parts_of(version, folder))
    return replace(KUBE_APISERVER, folder=folder)


def assets_of(version: str) -> ControlPlaneAssets:
    """Find kube-apiserver of a version, or build it; etcd is always our own one.

    Raises:
        ControlPlaneError: If one has to be built and Go is missing, or the build fails.
    """
    folder = cache_folder(f"v{version}")
    if not all((folder / name).exists() for name in ("kube-apiserver", "etcd")):
        etcd, go = assets().etcd, go_command()
        if go is None:
            raise ControlPlaneError(f"kube-apiserver {version} would have to be built, and Go is missing")
        try:
            build(go, of_version(version), folder)
        except (subprocess.SubprocessError, OSError) as error:
            raise ControlPlaneError(f"the build failed: {error}; it needs Go's module proxy (GOPROXY)") from error
        if not (folder / "etcd").exists():
            shutil.copy(etcd, folder / "etcd")
    return ControlPlaneAssets(kube_apiserver=folder / "kube-apiserver", etcd=folder / "etcd")


def assets() -> ControlPlaneAssets:
    """Find both binaries as the environment names them, or build them.

    Raises:
        ControlPlaneError: If they have to be built and Go is missing, or the build fails.
    """
    if os.environ.get("KUBEBUILDER_ASSETS") or os.environ.get("TEST_ASSET_KUBE_APISERVER"):
        found = find_assets()
        if found is not None:
            return found
    folder = cache_folder(KUBE_APISERVER.version)
    missing = [program.name for program in (ETCD, KUBE_APISERVER) if not (folder / program.name).exists()]
    go = go_command()
    if missing and go is None:
        needed = re.search(r"^go (\S+)", (KUBE_APISERVER.folder / "go.mod").read_text(), re.MULTILINE)
        raise ControlPlaneError(
            f"{' and '.join(missing)} would have to be built, and Go is missing: install Go "
            f"{needed[1] if needed else ''} or newer (or name it by DELTALOOP_GO), or let KUBEBUILDER_ASSETS name a "
            "folder with both binaries"
        )
    try:
        etcd, server = (build(go or "", program, folder) for program in (ETCD, KUBE_APISERVER))
    except (subprocess.SubprocessError, OSError) as error:
        raise ControlPlaneError(f"the build failed: {error}; it needs Go's module proxy (GOPROXY)") from error
    return ControlPlaneAssets(kube_apiserver=server, etcd=etcd)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.kube.build", description=__doc__)
    parser.add_argument("--version", default="", help="of Kubernetes, such as 1.33.13; our own by default")
    version = parser.parse_args().version.removeprefix("v")
    try:
        found = assets_of(version) if version else assets()
    except ControlPlaneError as error:
        sys.exit(str(error))
    print(f"kube-apiserver {found.version}: {found.kube_apiserver}")
    print(f"etcd: {found.etcd}")


if __name__ == "__main__":
    main()
