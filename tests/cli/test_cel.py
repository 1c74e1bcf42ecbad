"""``deltaloop cel``: what it prints, and what it says about mistakes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from deltaloop.api.kubernetes_version import MINOR
from deltaloop.cli.main import main


def run(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["deltaloop", "cel", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(str(ended.value.code))


def test_cel_check_prints_type_or_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "self.size() + n", "--variable", "self", "--variable", "n:int") == 0
    assert capsys.readouterr().out == "int\n"
    assert run("check", "1 + 'a'") == 2
    assert capsys.readouterr().err == (
        "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^\n"
    )
    assert run("check", "n", "--variable", "n:integer") == 2
    assert "type must be one of any, bool" in capsys.readouterr().err


def test_cel_eval_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "object.yaml").write_text("spec: {replicas: 3, since: '2026-01-02T03:04:05Z'}\n")
    variables = ("--variable", f"self=@{tmp_path / 'object.yaml'}", "--variable", "extra=2")
    assert run("eval", "dyn(self.spec.replicas + extra)", *variables) == 0
    assert run("eval", "[timestamp(self.spec.since)]", *variables) == 0
    assert run("eval", "{'a': duration('90m')}") == 0
    assert run("eval", "[b'a']") == 0
    assert run("eval", "type(1.0 / 0.0)") == 0
    assert run("eval", "optional.of(1.0 / 0.0)") == 0
    assert capsys.readouterr().out.splitlines() == [
        "5",
        '["2026-01-02T03:04:05Z"]',
        '{"a": "5400s"}',
        '["YQ=="]',
        '"double"',
        '"inf"',
    ]


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("ip('::1')", '"::1"'),
        ("[cidr('10.0.0.0/8').masked()]", '["10.0.0.0/8"]'),
        ("quantity('1.5Gi')", '"1536Mi"'),
        ("quantity('1').add(quantity('500m'))", '"1500m"'),
        ("quantity('3').add(5)", '"8"'),
        ("semver('1.2.3-a.1+b.c')", '"1.2.3-a.1+b.c"'),
        ("url('http://a.b/c?d')", '"http://a.b/c?d"'),
        ("format.named('dns1123Label').value()", '"DNS1123Label"'),
        ("{true: 1u}", '{"true": 1}'),
        ("{2: optional.of('a')}", '{"2": "a"}'),
        ("optional.none()", '"optional_type"'),
        ("[null]", "[null]"),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_cel_eval_prints_text_of_types_without_json_form(
    expression: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("eval", expression) == 0
    assert capsys.readouterr().out == f"{printed}\n"


def test_printed_type_can_be_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    for written in ("list(int)", "map(string, list(optional_type(int)))", "net.IP", "kubernetes.Quantity", "dyn"):
        assert run("check", "n", "--variable", f"n:{written}") == 0
        assert capsys.readouterr().out == f"{written}\n"
    for wrong, told in (
        ("list(integer)", "integer"),
        ("list(int", "list(int"),
        ("map(int)", "map(int)"),
        ("list()", ""),
    ):
        assert run("check", "n", "--variable", f"n:{wrong}") == 2
        said = " ".join(capsys.readouterr().err.replace("│", " ").split())
        assert f"got {told!r}" in said
        assert "list(TYPE), map(TYPE, TYPE)" in said


def test_cel_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("eval", "self.a", "--variable", "self={}") == 2
    assert capsys.readouterr().err == "error: no such key: a\n"
    assert run("eval", "[1, 2, 3].map(x, x + 1)", "--budget", "42") == 2
    assert capsys.readouterr().err == "error: operation cancelled: actual cost limit exceeded\n"
    assert run("eval", "1", "--variable", "self") == 2
    assert "must be NAME=VALUE, got 'self'" in capsys.readouterr().err
    assert run("eval", "1", "--variable", "self=@/no/such/file") == 2
    assert "/no/such/file cannot be read: No such file or directory" in capsys.readouterr().err
    assert run("eval", "1", "--variable", "'a'=1") == 2
    assert "must be NAME=VALUE" in capsys.readouterr().err
    assert run("check", "self", "--variable", "self=1") == 2
    assert "must be NAME[:TYPE], got 'self=1'" in capsys.readouterr().err


def test_value_can_come_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"spec": {"replicas": 3}}'))
    assert run("eval", "self.spec.replicas < 5", "--variable", "self=@-") == 0
    assert capsys.readouterr().out == "true\n"


def test_kubernetes_functions_depend_on_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("eval", "quantity(self).isLessThan(quantity('2Gi'))", "--variable", "self=500Mi", "--cost") == 0
    assert capsys.readouterr().out.splitlines() == ["true", "cost: 4"]
    assert run("check", "semver('1.2.3').major()", "--kubernetes", "1.33", "--cost") == 0
    assert capsys.readouterr().out.splitlines() == ["int", "cost: 2 to 2"]
    assert run("check", "semver('1.2.3')", "--kubernetes", "1.32") == 2
    assert "undeclared reference to 'semver'" in capsys.readouterr().err
    assert run("check", "names.all(n, n != '')", "--variable", "names", "--cost") == 0
    assert capsys.readouterr().out.splitlines() == ["bool", "cost: 2 to any"]
    assert run("check", "1", "--kubernetes", "new") == 2
    assert "--kubernetes must be like 1.33, got 'new'" in capsys.readouterr().err


def test_unknown_kubernetes_version_is_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    major, minor = (int(part) for part in MINOR.split("."))
    for known in ("1.23", MINOR):
        assert run("check", "1", "--kubernetes", known) == 0
    assert capsys.readouterr().out == "int\nint\n"
    for unknown in ("1.22", f"{major}.{minor + 1}", "1.99", "0.30", "2.0"):
        for command in ("check", "eval"):
            assert run(command, "1", "--kubernetes", unknown) == 2
            printed = capsys.readouterr()
            assert printed.out == ""
            said = " ".join(printed.err.replace("│", " ").split())
            assert f"--kubernetes must be 1.23 to {MINOR}, got {unknown}" in said
