"""``deltaloop generate types``: a file or a group becomes modules; ``--check`` says what would change."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import deltaloop as dl
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.apiserver import ApiServer
from deltaloop.cli.generate.types import of_group
from deltaloop.cli.main import main
from tests.schemas.test_schema_stubs import definition, struct


def run(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["deltaloop", "generate", "types", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(str(ended.value.code))


def test_types_are_generated_from_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crds, folder = tmp_path / "crds.yaml", tmp_path / "typed"
    crds.write_text(write_yaml([{"kind": "ConfigMap"}, definition(struct(size={"type": "integer"}))]))
    assert run(str(crds), "--output", str(folder)) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["some_example_com_v1.py", "some_example_com_v1.pyi"]
    assert capsys.readouterr().out.count("some_example_com_v1") == 2
    assert run(str(crds), "--output", str(folder), "--check") == 0
    assert capsys.readouterr().out == ""
    (folder / "some_example_com_v1.pyi").write_text("")
    assert run(str(crds), "--output", str(folder), "--check") == 1
    assert capsys.readouterr().out == f"{folder / 'some_example_com_v1.pyi'} differs\n"


def test_file_without_crds_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("kind: ConfigMap\n")
    assert run(str(tmp_path / "a.yaml")) == 2
    assert "must be a file with CRDs" in capsys.readouterr().err


async def test_types_are_generated_from_group_of_server() -> None:
    made = definition(struct(size={"type": "integer"}))
    made["metadata"] = {"name": "dbclusters.some.example.com"}
    made["spec"]["versions"][0]["storage"] = True
    async with ApiServer() as server, dl.connect(kubeconfig=server.kubeconfig()) as client:
        await client.create(dl.kinds.CUSTOM_RESOURCE_DEFINITION, made)
        (found,) = await of_group(dl.connect(kubeconfig=server.kubeconfig()), "some.example.com")
        assert found["spec"]["names"]["kind"] == "DbCluster"
        assert await of_group(dl.connect(kubeconfig=server.kubeconfig()), "example.com") == []
