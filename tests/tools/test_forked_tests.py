"""Runs in forks are reported and measured as others are."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "test_a": """
        def test_right(tmp_path):
            assert tmp_path.parent.name.startswith("fork-")

        def test_wrong():
            assert 1 == 2
        """,
    "test_b": """
        import os

        def test_ends():
            os._exit(7)
        """,
    "test_c": """
        import pytest

        def test_left_out():
            pytest.skip("why")
        """,
    "test_d": """
        from time import process_time

        def test_long():
            began = process_time()
            while process_time() < began + 0.2:
                pass
        """,
}


@pytest.mark.nightly
@pytest.mark.real_time
def test_forked_tests_report_results_and_costs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(**FILES)
    plugins = ("-p", "tools.forked_tests", "-p", "tools.test_cost")
    result = pytester.runpytest_subprocess(*plugins, "--forks", "2", "--cost-limit", "0.01")
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    result.stdout.fnmatch_lines(["*the process that ran it ended with 7*"])
    result.stdout.fnmatch_lines(["*0.2*test_d.py::test_long", "cost * (* CPU s, calibration loop * s, limit 0.01)"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.nightly
@pytest.mark.real_time
def test_run_above_cost_limit_fails(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_d=FILES["test_d"])
    codes = [
        pytester.runpytest_subprocess("-p", "tools.test_cost", "--cost-limit", limit).ret for limit in ("0.01", "100")
    ]
    assert codes == [pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.OK]
