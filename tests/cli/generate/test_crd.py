"""``deltaloop generate crd`` prints definitions that the server accepts, and the differences of a file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.apiserver.core.crds.definition import default_crd
from deltaloop.apiserver.core.crds.validation import validate_crd
from deltaloop.cli.app import app
from deltaloop.cli.load_controllers import LoadError
from deltaloop.errors import InvalidArgumentError, InvalidKindError

MODULE = """
from typing import Annotated, Literal

import msgspec

import deltaloop as dl
from deltaloop.crds import list_map_keys

class Port(msgspec.Struct):
    name: str

KEYED = list_map_keys("name")

class Spec(msgspec.Struct):
    replicas: Annotated[int, msgspec.Meta(le=9)] = 1
    ports: Annotated[list[Port], KEYED] = []
    others: Annotated[list[Port], KEYED] = []
    mode: Literal["fast", "safe"] = "safe"

@dl.custom_resource(group="example.com", version="v1", storage=True)
class Database(msgspec.Struct):
    "A database \\u2014 of ours."
    spec: Spec

@dl.custom_resource(group="example.com", version="v1beta1", kind="Database")
class OldDatabase(msgspec.Struct):
    spec: Spec

@dl.custom_resource(group="example.com", version="v1")
class Backup(msgspec.Struct):
    spec: Spec
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    # A file that is as long as before is taken for the same one within a second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    file = tmp_path / "kinds_of_the_test.py"
    file.write_text(MODULE)
    yield file
    sys.modules.pop(file.stem, None)


def run(*arguments: str) -> Result:
    importlib.invalidate_caches()
    return CliRunner().invoke(app, ["generate", "crd", *arguments])


def test_generated_crds_are_accepted_by_server(module: Path) -> None:
    done = run(module.name)
    assert done.exit_code == 0, done.output
    databases, backups = read_yaml_documents(done.stdout)
    assert [each["metadata"]["name"] for each in (databases, backups)] == [
        "databases.example.com",
        "backups.example.com",
    ]
    assert [each["name"] for each in databases["spec"]["versions"]] == ["v1", "v1beta1"]
    for crd in (databases, backups):
        whole = {**default_crd(crd), "status": {"storedVersions": ["v1"]}}
        assert validate_crd(whole) == []
    assert "&id" not in done.stdout  # what is the same twice is written twice
    assert "\u2014" in done.stdout


def test_crd_of_one_class_can_be_generated(module: Path) -> None:
    [backups] = read_yaml_documents(run(f"{module.name}:Backup").stdout)
    assert backups["spec"]["names"]["kind"] == "Backup"


def test_check_ignores_other_objects_in_file(module: Path) -> None:
    file = module.with_name("crd.yaml")
    file.write_text(run(module.name).stdout + "---\nkind: Namespace\nmetadata: {name: a}\n")
    done = run(module.name, "--check", "crd.yaml")
    assert (done.exit_code, done.output) == (0, "")


def test_check_reports_differences_and_breaking_changes(module: Path) -> None:
    file = module.with_name("crd.yaml")
    file.write_text(run(f"{module.name}:Backup").stdout + "---\n" + GONE)
    module.write_text(MODULE.replace("replicas: ", "servers: ").replace('"fast", ', ""))
    done = run(module.name, "--check", "crd.yaml")
    assert done.exit_code == 1
    place = "  spec.versions[v1].schema.openAPIV3Schema.properties.spec.properties"
    assert done.stderr.splitlines() == [
        "crd.yaml does not contain the definition databases.example.com",
        "crd.yaml: backups.example.com differs from the class",
        f"{place}.replicas: an object in the file, missing in the class",
        f"{place}.mode.enum: ['fast', 'safe'] in the file, ['safe'] in the class",
        f"{place}.servers: missing in the file, an object in the class",
        "  The change breaks stored objects:",
        "    v1: spec.replicas: field removed: the server drops it from stored objects",
        "    v1: spec.mode: value removed: 'fast' is no longer allowed",
        "crd.yaml contains the definition gone.example.com, which has no class",
        "Update the file: deltaloop generate crd kinds_of_the_test.py > crd.yaml",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            'v1")\nclass Backup',
            'v1", plural="copies")\nclass Backup',
            ["spec.names.plural: name changed: was 'backups', is 'copies', so stored objects have a different kind"],
        ),
        (
            "class Backup",
            "class Copy",
            [
                "spec.names.kind: name changed: was 'Backup', is 'Copy', so stored objects have a different kind",
                "spec.names.plural: name changed: was 'backups', is 'copies', so stored objects have a different kind",
            ],
        ),
        (
            "example.com",
            "example.org",
            ["spec.group: name changed: was 'example.com', is 'example.org', so stored objects have a different kind"]
            * 2,
        ),
        ('v1")\nclass Backup', 'v1", short_names=["b"])\nclass Backup', []),
    ],
    ids=["plural", "kind", "group", "short name"],
)
def test_renamed_definition_is_matched(module: Path, before: str, after: str, told: list[str]) -> None:
    module.with_name("crds.yaml").write_text(run(module.name).stdout)
    assert before in MODULE
    module.write_text(MODULE.replace(before, after))
    del sys.modules[module.stem]
    lines = [line.strip() for line in run(module.name, "--check", "crds.yaml").stderr.splitlines()]
    assert [line for line in lines if "name changed" in line] == told
    assert not [line for line in lines if "does not contain the definition" in line or "has no class" in line]
    assert ("The change breaks stored objects:" in lines) == bool(told)


def test_check_does_not_suggest_overwriting_other_objects(module: Path) -> None:
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept}\n"
    file = module.with_name("crd.yaml")
    file.write_text(run(module.name).stdout + "---\n" + config_map)
    assert run(module.name, "--check", "crd.yaml").exit_code == 0
    file.write_text(config_map)
    done = run(module.name, "--check", "crd.yaml")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[-1] == (
        "Replace the definitions in crd.yaml with the output of: deltaloop generate crd kinds_of_the_test.py"
    )


GONE = "kind: CustomResourceDefinition\nmetadata: {name: gone.example.com}\n"


@pytest.mark.parametrize(
    ("replaced", "target", "error", "named"),
    [
        ((), "kinds_of_the_test.py:Port", LoadError, "Port"),
        ((), "kinds_of_the_test.py:Nobody", LoadError, "Nobody"),
        (("@dl.custom_resource", "# "), "kinds_of_the_test.py", LoadError, "kinds_of_the_test"),
        ((", storage=True", ""), "kinds_of_the_test.py", InvalidKindError, "storage"),
        (("v1beta1", "v1"), "kinds_of_the_test.py", InvalidKindError, "version"),
        (("le=9", "le=0"), "kinds_of_the_test.py", InvalidKindError, "Spec.replicas"),
    ],
)  # fmt: skip
def test_error_names_the_invalid_class_or_field(
    module: Path, replaced: tuple[str, str] | tuple[()], target: str, error: type[Exception], named: str
) -> None:
    module.write_text(MODULE.replace(*replaced) if replaced else MODULE)
    done = run(target)
    assert isinstance(done.exception, error), done.output
    assert isinstance(done.exception, LoadError | InvalidKindError)
    place = done.exception.subject if isinstance(done.exception, LoadError) else done.exception.argument
    assert place == named


def test_missing_file_raises_error(module: Path) -> None:
    done = run(module.name, "--check", "nowhere.yaml")
    assert isinstance(done.exception, InvalidArgumentError)
    assert "nowhere.yaml cannot be read" in str(done.exception)
