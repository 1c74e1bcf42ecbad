"""A whole run fails if a named test is missing, skipped or failed, in one process and with workers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.parity.session import EveryNamedTestPasses, names_of

ROOT = Path(__file__).parents[2]
SUITE = """
import pytest

def test_good():
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_several(number):
    pass

@pytest.mark.parametrize("number", [1, 2])
def test_sometimes(number):
    assert number == 1 or FINE

def test_skipped():
    pytest.skip("no such thing here")

@pytest.fixture
def untidy():
    yield
    assert FINE

def test_untidy(untidy):
    pass
"""
GOOD = ["test_good", "test_several", "test_several[2]"]
BAD = ["test_sometimes", "test_sometimes[2]", "test_skipped", "test_untidy", "test_several[3]", "test_gone"]


@dataclass
class Suite:
    """A small suite of its own; its one file has a name that no other has, because modules are kept by name."""

    folder: Path

    def write(self, *, fine: bool = True) -> None:
        (self.folder / "suite").mkdir(exist_ok=True)
        (self.folder / "pytest.ini").write_text("[pytest]\ntestpaths = suite\n")
        (self.folder / self.file).write_text(f"FINE = {fine}\n" + SUITE)

    @property
    def file(self) -> str:
        return f"suite/test_{self.folder.name}.py"

    def ids(self, *names: str) -> list[str]:
        return [f"{self.file}::{name}" for name in names]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    made = Suite(tmp_path)
    made.write()
    monkeypatch.chdir(tmp_path)
    return made


def run(check: EveryNamedTestPasses, *arguments: str) -> int:
    # The plugin of errors that nobody sees collects all garbage of this process, five times.
    without = [f"-pno:{name}" for name in ("cacheprovider", "faulthandler", "timeout", "xdist", "unraisableexception")]
    return pytest.main([*without, "-q", *arguments], plugins=[check])


def test_session_with_all_named_tests_passed_succeeds(suite: Suite) -> None:
    check = EveryNamedTestPasses(suite.ids(*GOOD, "test_sometimes"))
    assert run(check) == pytest.ExitCode.OK
    assert check.missing() == []


def test_skipped_or_missing_test_fails_session(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = suite.ids(*GOOD, "test_skipped")
    assert run(EveryNamedTestPasses(wanted), "suite") == pytest.ExitCode.TESTS_FAILED
    assert "that did not pass in this run" in capsys.readouterr().out
    assert run(EveryNamedTestPasses(wanted), "-k", "good") == pytest.ExitCode.OK, "a part proves nothing"


def test_all_unsuccessful_outcomes_are_missing(suite: Suite) -> None:
    suite.write(fine=False)
    check = EveryNamedTestPasses(suite.ids(*GOOD, *BAD))
    assert run(check) == pytest.ExitCode.TESTS_FAILED
    assert check.missing() == sorted(suite.ids(*BAD))


def test_reports_of_xdist_workers_count(suite: Suite) -> None:
    (suite.folder / "suite" / "conftest.py").write_text(
        "from lab.parity.session import EveryNamedTestPasses\n"
        "def pytest_configure(config):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        f"        config.pluginmanager.register(EveryNamedTestPasses({suite.ids(*GOOD, 'test_skipped')!r}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--import-mode=importlib", "-p", "xdist.plugin", "-n", "1", "-q"],
        cwd=suite.folder,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    told = done.stdout.partition("did not pass in this run")[2].partition("short test summary")[0]
    assert f"{suite.file}::test_skipped" in told
    assert "test_good" not in told


def test_names_of_a_test() -> None:
    assert names_of("a.py::test") == names_of("a.py::test@group") == {"a.py::test"}
    assert names_of("a.py::test[x@y]") == names_of("a.py::test[x@y]@group") == {"a.py::test[x@y]", "a.py::test"}
