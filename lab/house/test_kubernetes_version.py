"""The version of Kubernetes is one number: what depends on it reads it, or is rewritten by ``make -C lab
kubernetes``."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from tools.kubernetes.__main__ import MODULES, NUMBER
from tools.kubernetes.go_modules import raised
from tools.protobuf_table.table import FIELDS

from deltaloop.api.kubernetes_version import KUBERNETES, MINOR
from deltaloop.apiserver.builtin_tables import builtin_tables
from lab.kube.build import KUBE_APISERVER
from lab.world.build import CONTROLLER_MANAGER, KUBECTL, SCHEDULER

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "src" / "deltaloop" / "apiserver"
FOLDERS = ("src", "tests", "tools", "examples", "docs", "internals")
SUFFIXES = (".py", ".md", ".toml")
# Since when there is what a KEP is about stays as it is.
SAID = re.compile(
    r"(?i)(?<!alpha in )(?<!alpha since )(?<!before )(?:kubernetes|kube-apiserver|real server|real one) "
    rf"v?{re.escape(MINOR)}\b|\(v?{re.escape(MINOR)}\)"
)


def texts() -> list[tuple[Path, str]]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return [(path, path.read_text()) for path in sorted(paths)]


def test_kubernetes_version_is_written_in_one_module() -> None:
    rewritten = {ROOT / name for name in NUMBER}
    assert [str(path) for path, text in texts() if path not in rewritten and SAID.search(text)] == []


@pytest.mark.parametrize(
    "line", [f"as Kubernetes {MINOR} has them", f"kube-apiserver v{MINOR}.", f"Source: x.go ({MINOR})"]
)
def test_written_version_is_detected(line: str) -> None:
    assert SAID.search(line)


@pytest.mark.parametrize("line", [f"alpha in Kubernetes {MINOR}", f"before Kubernetes {MINOR}", f"Go {MINOR}"])
def test_first_supporting_version_is_ignored(line: str) -> None:
    assert not SAID.search(line)


def test_server_page_contains_version() -> None:
    page = " ".join((ROOT / "docs" / "reference" / "embedded-server.md").read_text().split())
    assert f"those of Kubernetes {KUBERNETES} (" in page


def test_tables_have_kubernetes_version() -> None:
    assert builtin_tables().kubernetes == MINOR
    for name in ("bootstrap_policy", "flow_control"):
        first = json.loads(gzip.decompress((SERVER / f"{name}.json.gz").read_bytes()))
        assert first["kubernetes"] == f"v{KUBERNETES}"
    modules = re.findall(r"^# (k8s\.io/\S+) v(\S+)$", FIELDS.read_text(), re.MULTILINE)
    assert {version for _, version in modules} == {KUBERNETES.replace("1.", "0.", 1)}
    assert len(modules) == 4


def test_compared_programs_have_kubernetes_version() -> None:
    built = [KUBE_APISERVER, *(each.program for each in (CONTROLLER_MANAGER, KUBECTL, SCHEDULER))]
    assert {program.version for program in built} == {f"v{KUBERNETES}"}
    libraries = f"v{KUBERNETES.replace('1.', '0.', 1)}"
    client = (ROOT / "lab" / "interop" / "go_client" / "go.mod").read_text()
    assert f"k8s.io/client-go {libraries}\n" in client


@pytest.mark.parametrize("name", MODULES)
def test_go_module_version_can_be_raised_and_restored(name: str) -> None:
    """Without what ``go mod tidy`` adds, which asks the module proxy."""
    here = (ROOT / name / "go.mod").read_text()
    parts = re.findall(r"^\t(\S+) => ", here, re.MULTILINE)
    there = raised(here, "1.98.7", parts)
    assert re.findall(r"k8s\.io/\S+ v(\S+)$", there, re.MULTILINE).count("0.98.7") >= max(len(parts), 3)
    assert not re.search(rf"v[01]\.{KUBERNETES.partition('.')[2]}\b", there)
    back = raised(there, KUBERNETES, parts)
    assert back == raised(here, KUBERNETES, parts)
    assert set(back.splitlines()) - set(here.splitlines()) <= {f"\tk8s.io/kubernetes v{KUBERNETES}"}
