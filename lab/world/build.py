"""Build the programs of ``make -C lab world``, once for each version, into a cache outside the tree.

    python -m lab.world.build

Each is built by the Go module in a folder here, as ``lab.kube.build`` builds the real server: go.mod decides its
version, go.sum what is let in. Files that a program needs beside itself are taken from the same module.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deltaloop.testing.servers.control_plane import ControlPlaneAssets, ControlPlaneError
from deltaloop.testing.servers.core import control_plane as core
from lab.kube.build import Program, assets, build, go_command

HERE = Path(__file__).parent
SECONDS = 300.0
KUBERNETES = "k8s.io/kubernetes"


@dataclass(frozen=True)
class WorldProgram:
    """One program and the files of its module that it needs: their folders, and by which pattern."""

    program: Program
    files: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def folder(self) -> Path:
        """Where the program and its files are kept on this machine, whether they are there or not."""
        root = core.cache_root(os.environ, Path.home()).with_name("world")
        version = f"{self.program.folder.name}-{self.program.version}"
        return root / core.cache_folder_name(version, system=platform.system(), machine=platform.machine())

    @property
    def path(self) -> Path:
        return self.folder / self.name

    def file_folder(self, number: int) -> Path:
        """Where the files of the pattern with that number are kept."""
        return self.folder / f"{self.name}-files-{number}"

    def is_built(self) -> bool:
        folders = [self.file_folder(number) for number in range(len(self.files))]
        return self.path.exists() and all(folder.is_dir() for folder in folders)


def _kubernetes(name: str) -> WorldProgram:
    return WorldProgram(Program(name, HERE / "controllers", f"{KUBERNETES}/cmd/{name}", KUBERNETES))


def _helm(major: str) -> WorldProgram:
    module = f"helm.sh/helm/{major}"
    return WorldProgram(Program("helm", HERE / "helm", f"{module}/cmd/helm", module))


# Programs that share a module share most of their build: it takes the longest.
CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
SCHEDULER = _kubernetes("kube-scheduler")
KUBECTL = _kubernetes("kubectl")
SAMPLE_CONTROLLER = WorldProgram(
    Program("sample-controller", HERE / "sample_controller", "k8s.io/sample-controller", "k8s.io/sample-controller"),
    files=(("artifacts/examples", "crd-status-subresource.yaml"),),
)
KWOK = WorldProgram(
    Program("kwok", HERE / "kwok_0_8", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok"),
    files=(("kustomize/stage/node/fast", "node-*.yaml"), ("kustomize/stage/pod/fast", "pod-*.yaml")),
)
HELM_3 = _helm("v3")
HELM_4 = _helm("v4")
PROGRAMS = (CONTROLLER_MANAGER, SCHEDULER, KUBECTL, KWOK, HELM_3, HELM_4, SAMPLE_CONTROLLER)


def missing() -> list[str]:
    """Name the programs that have to be built."""
    return [f"{each.name} {each.program.version}" for each in PROGRAMS if not each.is_built()]


def build_all(go: str) -> None:
    """Build what is missing.

    Raises:
        ControlPlaneError: If a build fails.
    """
    for each in PROGRAMS:
        try:
            build(go, each.program, each.folder)
            for number, (folder, pattern) in enumerate(each.files):
                _copy_files(go, each, folder, pattern, each.file_folder(number))
        except (subprocess.SubprocessError, OSError) as error:
            raise ControlPlaneError(f"{each.name} was not built: {error}; it needs Go's module proxy") from error


def _copy_files(go: str, program: WorldProgram, folder: str, pattern: str, target: Path) -> None:
    if target.is_dir():
        return
    module = program.program.module
    subprocess.run([go, "mod", "download", module], cwd=program.program.folder, timeout=SECONDS, check=True)
    command = [go, "list", "-m", "-f", "{{.Dir}}", module]
    done = subprocess.run(
        command, cwd=program.program.folder, timeout=SECONDS, check=True, capture_output=True, text=True
    )
    found = sorted((Path(done.stdout.strip()) / folder).glob(pattern))
    if not found:
        raise FileNotFoundError(f"{module} {program.program.version} has no {folder}/{pattern}")
    half_done = target.with_suffix(f".{os.getpid()}.new")
    half_done.mkdir(parents=True)
    for path in found:
        shutil.copyfile(path, half_done / path.name)
    half_done.rename(target)


def everything() -> ControlPlaneAssets:
    """Build what is missing of the programs and of the real server, and return the real server's binaries.

    Raises:
        ControlPlaneError: If something has to be built and Go is missing, or a build fails.
    """
    go = go_command()
    names = missing()
    if names and go is None:
        raise ControlPlaneError(
            f"{', '.join(names)} would have to be built, and Go is missing (or name it by DELTALOOP_GO)"
        )
    found = assets()
    build_all(go or "")
    return found


def main() -> None:
    argparse.ArgumentParser(prog="python -m lab.world.build", description=__doc__).parse_args()
    try:
        everything()
    except ControlPlaneError as error:
        sys.exit(str(error))
    for each in PROGRAMS:
        print(f"{each.name} {each.program.version}: {each.path}")


if __name__ == "__main__":
    main()
