"""What keeps a checkout from being released, and which versions are the lowest."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools.install import LOCK, requirements
from tools.release import provenance, sbom
from tools.release.checks import PLACEHOLDER, Checkout, refusals, sections, unreleased
from tools.release.lowest import lowest

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changes

## Unreleased

## 1.2.0 (2026-01-31)

### Added

- A thing.

## 1.1.0 (2025-12-24)
"""
READY = Checkout(
    version="1.2.0",
    tags=["v1.2.0"],
    changed=[],
    changelog=CHANGELOG,
    security="Write to security@example.com.",
    signers="deltaloop ssh-ed25519 AAAA",
    signs=True,
)


def test_tagged_commit_with_changes_can_be_released() -> None:
    assert refusals(READY) == []
    assert refusals(replace(READY, tags=["other", "v1.2.0"])) == []


@pytest.mark.parametrize(
    ("checkout", "reason"),
    [
        (replace(READY, changed=["README.md", "new.py"]), "the tree differs from the commit: README.md, new.py;"),
        (replace(READY, tags=[]), "must have the tag v1.2.0; it has no tag"),
        (replace(READY, tags=["v1.2.1", "1.2.0"]), "must have the tag v1.2.0; its tags are v1.2.1, 1.2.0"),
        (replace(READY, changelog="# Changes\n\n## 1.2 (2026-01-31)\n"), "has no section 1.2.0"),
        (replace(READY, changelog=CHANGELOG.replace("2026-01-31", "prepared")), "has no day for 1.2.0"),
        (replace(READY, changelog=CHANGELOG.replace(" (2026-01-31)", "")), "has no day for 1.2.0"),
        (replace(READY, changelog=CHANGELOG.replace("Unreleased\n", "Unreleased\n\n- More.\n")), "below Unreleased"),
        (replace(READY, security=f"Write to {PLACEHOLDER}."), "SECURITY.md has no address"),
        (replace(READY, signers="# ssh-ed25519 is to come"), "allowed_signers has no key"),
        (replace(READY, signs=False), "nothing signs the checksums"),
    ],
)
def test_missing_release_condition_is_reported(checkout: Checkout, reason: str) -> None:
    (found,) = refusals(checkout)
    assert reason in found


def test_all_missing_release_conditions_are_reported() -> None:
    assert len(refusals(Checkout(version="1.3.0", tags=[], changed=["a"], changelog=CHANGELOG))) == 5


def test_changelog_sections_can_be_parsed() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    titles = [each.title for each in sections(text)]
    assert len(titles) == text.count("\n## ")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert titles[:2] == ["Unreleased", version]
    assert "## " not in unreleased(text).replace("### ", "")


def test_each_requirement_has_lowest_version() -> None:
    found = lowest(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    assert {"aiohttp", "msgspec", "PyYAML", "typer", "cryptography", "pytest"} <= set(found)
    page = (ROOT / "internals" / "dependencies.md").read_text()
    for name, version in found.items():
        assert f"| {name} | {version} |" in page, f"internals/dependencies.md has another lowest version of {name}"


def test_each_requirement_is_locked_with_hashes() -> None:
    pins = re.findall(
        r"^([a-z0-9.-]+)==\S+.*\\\n((?: {4}--hash=sha256:[0-9a-f]{64}.*\n)+)", LOCK.read_text(), re.MULTILINE
    )
    locked = {name for name, _ in pins}
    assert len(pins) == len(re.findall(r"^[a-z]", LOCK.read_text(), re.MULTILINE)), "run `make lock`: a pin has no hash"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    wanted = [
        *requirements(project["project"]["optional-dependencies"]),
        *groups["dev"],
        *groups["test"],
        *groups["docs"],
    ]
    names = {
        re.split(r"[^A-Za-z0-9._-]", each)[0].lower().replace("_", "-") for each in wanted if isinstance(each, str)
    }
    assert names - locked == set(), "run `make lock`"


def project_with(dependencies: list[str], extras: dict[str, list[str]]) -> dict[str, Any]:
    tests: list[str] = []
    return {
        "project": {"dependencies": dependencies, "optional-dependencies": extras},
        "dependency-groups": {"test": tests},
    }


@pytest.mark.parametrize("requirement", ["msgspec", "msgspec==1", "msgspec>1", "msgspec>=1,<2"])
def test_requirement_without_lowest_version_is_rejected(requirement: str) -> None:
    project = project_with([requirement], {})
    with pytest.raises(ValueError, match="write name>=version"):
        lowest(project)


def test_two_lowest_versions_of_package_are_rejected() -> None:
    project = project_with(["a>=1"], {"x": ["a[y]>=2"]})
    with pytest.raises(ValueError, match="two lowest"):
        lowest(project)


def test_the_bill_of_materials_is_current() -> None:
    assert sbom.FILE.read_text() == sbom.text(), "run `make generate`"
    bill = json.loads(sbom.FILE.read_text())
    assert "" not in {each["licenses"][0]["expression"] for each in bill["components"]}
    assert {each["name"] for each in bill["components"]} >= {"aiohttp", "msgspec", "typer", "kubernetes"}


def made_key(folder: Path, name: str) -> Path:
    key = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    return key


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is missing")
def test_the_line_of_the_readme_detects_one_changed_byte(tmp_path: Path) -> None:
    wheel = tmp_path / "deltaloop-1.2.0-py3-none-any.whl"
    wheel.write_bytes(bytes(range(256)))
    listed = provenance.write(tmp_path, [wheel], commit="c" * 40, tag="v1.2.0", lock=LOCK)
    signers = tmp_path / "allowed_signers"
    key = made_key(tmp_path, "own")
    signers.write_text(f"# users accept:\ndeltaloop {key.with_suffix('.pub').read_text()}")
    provenance.sign(tmp_path, key, signers=signers)
    found = re.search(r"^ssh-keygen -Y verify.*?(?=^```)", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None

    def verified() -> bool:
        return subprocess.run(["/bin/bash", "-c", found[0]], cwd=tmp_path, capture_output=True).returncode == 0  # noqa: PLW1510

    assert verified()
    for file in [*listed, tmp_path / "SHA256SUMS"]:
        before = file.read_bytes()
        file.write_bytes(before[:100] + bytes([before[100] ^ 1]) + before[101:])
        assert not verified(), f"a changed byte of {file.name} is accepted"
        file.write_bytes(before)
    with pytest.raises(subprocess.CalledProcessError):
        provenance.sign(tmp_path, made_key(tmp_path, "other"), signers=signers)
    assert not verified()


def test_a_statement_names_the_file_and_its_source(tmp_path: Path) -> None:
    file = tmp_path / "a.whl"
    file.write_bytes(b"a wheel")
    found = provenance.statement(file, commit="c" * 40, tag="v1.2.0", lock=LOCK)
    assert found["subject"] == [{"name": "a.whl", "digest": {"sha256": hashlib.sha256(b"a wheel").hexdigest()}}]
    definition = found["predicate"]["buildDefinition"]
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": "c" * 40}
    assert definition["externalParameters"] == {"tag": "v1.2.0"}
