"""The forge's workflows call what is there: targets of the Makefile, scripts, versions that pyproject.toml names."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.y*ml"))
TARGETS = {
    folder: set(re.findall(r"^([a-z][a-z-]*):", (ROOT / folder / "Makefile").read_text(), re.MULTILINE))
    for folder in ("", "lab")
}
_VALUE = re.compile(r"\$\{\{ matrix\.(\w+) \}\}")


def read(path: Path) -> dict[str, Any]:
    # Not our reader of manifests, and not one that takes the key `on` for a truth: all scalars stay texts.
    found: dict[str, Any] = yaml.load(path.read_text(), yaml.BaseLoader)  # noqa: TID251
    return found


def commands(workflow: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the words of each command, once for each value that a job's matrix gives."""
    for job in workflow["jobs"].values():
        matrix: dict[str, list[str]] = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            for line in step.get("run", "").splitlines():
                names: list[str] = _VALUE.findall(line)
                assert len(names) <= 1
                assert set(names) <= set(matrix), line
                values = matrix[names[0]] if names else [""]
                for value in values:
                    yield shlex.split(_VALUE.sub(value, line))


def wrong(workflow: dict[str, Any]) -> list[str]:
    """List what a workflow calls that is not there."""
    found: list[str] = []
    for words in commands(workflow):
        if words[0] == "make":
            folder, called = (words[2], words[3:]) if words[1] == "-C" else ("", words[1:])
            found += [word for word in called if "=" not in word and word not in TARGETS[folder]]
        elif not (ROOT / words[0]).is_file():
            found.append(words[0])
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_calls_existing_targets(path: Path) -> None:
    workflow = read(path)
    assert {"name", "on", "jobs", "permissions"} <= set(workflow)
    assert list(commands(workflow))
    assert wrong(workflow) == []


def test_unknown_target_in_workflow_is_detected() -> None:
    jobs = {
        "a": {
            "strategy": {"matrix": {"target": ["test", "tset"]}},
            "steps": [
                {"uses": "x"},
                {"run": "make ${{ matrix.target }}"},
                {"run": "make A=b check\n.ci/run\n.ci/walk\npytest -q"},
            ],
        }
    }
    assert wrong({"jobs": jobs}) == ["tset", ".ci/walk", "pytest"]


def test_each_workflow_is_read_only_with_timeout() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "nightly", "release"]
    for path in WORKFLOWS:
        workflow = read(path)
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert int(job["timeout-minutes"]) > 0


def test_ci_runs_on_each_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)}
    text = (FORGE / "workflows" / "ci.yaml").read_text()
    tried = set(re.findall(r'"(3\.\d+)"', text))
    assert named <= tried
    assert project["requires-python"] == f">={min(named, key=lambda each: int(each.partition('.')[2]))}"


def test_ci_script_calls_existing_targets() -> None:
    called = re.findall(r"^make (?:-C (lab) )?([a-z-]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert len(called) > 5
    assert [target for folder, target in called if target not in TARGETS[folder]] == []


def test_root_makefile_is_short() -> None:
    assert len(TARGETS[""]) <= 18


def test_issue_forms_have_questions() -> None:
    forms = sorted((FORGE / "ISSUE_TEMPLATE").glob("*.yaml"))
    assert forms
    for form in forms:
        read_form = read(form)
        assert {"name", "description", "body"} <= set(read_form)
        asked = [each for each in read_form["body"] if each["type"] != "markdown"]
        assert len({each["id"] for each in asked}) == len(asked) > 0


def test_security_and_conduct_pages_are_linked() -> None:
    security = (ROOT / "SECURITY.md").read_text()
    assert "do not open a public issue" in security
    assert "SECURITY.md" in (ROOT / "CODE_OF_CONDUCT.md").read_text()
    assert "SECURITY.md" in (ROOT / "docs" / "project" / "security.md").read_text()


def test_threat_model_names_existing_tests() -> None:
    page = (ROOT / "docs" / "project" / "security.md").read_text()
    named = re.findall(r"\| `(tests/[\w/]+\.py)::(\w+)` \|", page)
    assert len(named) > 20
    assert [each for each in named if f"def {each[1]}(" not in (ROOT / each[0]).read_text()] == []


SOURCES = [*WORKFLOWS, *ROOT.glob("src/deltaloop/cli/project/template/*.txt"), *ROOT.glob("examples/**/Containerfile")]


def test_actions_and_images_are_pinned_by_digest() -> None:
    text = "\n".join(path.read_text() for path in SOURCES)
    actions = re.findall(r"^\s*(?:- )?uses: (\S+)", text, re.MULTILINE)
    images = re.findall(r"^FROM (?!scratch$)(\S+)", text, re.MULTILINE)
    assert len(actions) >= 10
    assert len(images) == 2
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) for each in actions)
    assert all(re.fullmatch(r"[\w.:/-]+@sha256:[0-9a-f]{64}", each) for each in images)


def test_lab_targets_are_written_with_folder() -> None:
    only_there = "|".join(sorted(TARGETS["lab"] - TARGETS[""], key=len, reverse=True))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    texts = {name: ROOT / name for name in listed if name.endswith((".py", ".md", ".toml", ".yaml", "Makefile"))}
    named = re.compile(rf"\bmake ({only_there})(?![\w-])")
    found = {name: named.findall(path.read_text()) for name, path in texts.items() if name != "CHANGELOG.md"}
    assert len(found) > 1000
    assert {name: targets for name, targets in found.items() if targets} == {}
