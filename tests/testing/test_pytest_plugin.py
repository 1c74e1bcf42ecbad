from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.testing.inner_runs import FILTERS


def write(pytester: pytest.Pytester, body: str, *, asked_for: bool = True) -> None:
    ini = 'deltaloop_async_tests = "virtual"' if asked_for else ""
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{FILTERS}\n{ini}\n")
    pytester.makepyfile("import asyncio, time, pytest\n" + textwrap.dedent(body))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_async_tests_run_in_virtual_time_with_fixtures_and_parameters(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        @pytest.fixture
        def delay():
            return 3600

        @pytest.mark.parametrize("factor", [1, 2])
        async def test_wait(delay, factor, tmp_path):
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(delay * factor)
            assert asyncio.get_running_loop().time() == began + delay * factor
            assert tmp_path.exists()

        class TestClass:
            async def test_method(self, delay):
                await asyncio.sleep(delay)

        def test_sync():
            with pytest.raises(RuntimeError):
                asyncio.get_running_loop()

        def test_starts_a_loop_of_its_own():
            asyncio.run(asyncio.sleep(0))
        """,
    )
    run(pytester).assert_outcomes(passed=5)


def test_marker_selects_real_clock(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        @pytest.mark.real_time
        async def test_real():
            began = time.monotonic()
            await asyncio.sleep(0.02)
            assert time.monotonic() - began >= 0.015
            assert asyncio.get_running_loop().time() > 1

        async def test_virtual():
            assert asyncio.get_running_loop().time() == 0
        """,
    )
    run(pytester).assert_outcomes(passed=2)


def test_leftover_task_fails_test(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        async def forgotten():
            await asyncio.sleep(1000)

        async def test_leaves_one():
            asyncio.create_task(forgotten())

        async def test_cleans_up():
            task = asyncio.create_task(forgotten())
            await asyncio.sleep(0)
            task.cancel()

        @pytest.mark.real_time
        async def test_leaves_one_in_real_time():
            asyncio.create_task(forgotten())
        """,
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*the test ended with 1 running task(s): <coroutine object forgotten at *"])


def test_failed_skipped_and_stalled_tests_are_reported(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        async def test_fails():
            assert 1 == 2

        async def test_skips():
            pytest.skip("not today")

        @pytest.mark.xfail(raises=ZeroDivisionError, strict=True)
        async def test_expected():
            1 / 0

        async def test_stalls():
            await asyncio.get_running_loop().create_future()

        async def test_goes_on():
            await asyncio.sleep(5)
        """,
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=2, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "*StalledError: the test cannot continue*"])


def test_plugin_handles_only_selected_tests(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        def test_sync():
            pass

        @pytest.mark.virtual_time
        async def test_marked():
            await asyncio.sleep(3600)
            assert asyncio.get_running_loop().time() == 3600

        async def test_not_ours():
            pass
        """,
        asked_for=False,
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*async def functions are not natively supported*"])


def test_other_plugin_receives_its_async_tests(pytester: pytest.Pytester) -> None:
    write(pytester, "async def test_theirs():\n    pass\n", asked_for=False)
    pytester.makeconftest(
        """
        import asyncio

        def pytest_pyfunc_call(pyfuncitem):
            asyncio.run(pyfuncitem.obj())
            print("theirs ran it")
            return True
        """
    )
    result = run(pytester, "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*theirs ran it*"])


def test_markers_are_registered(pytester: pytest.Pytester) -> None:
    write(pytester, "@pytest.mark.real_time\nasync def test_it():\n    pass\n")
    run(pytester, "--strict-markers", "--strict-config").assert_outcomes(passed=1)
    run(pytester, "--markers").stdout.fnmatch_lines(["*virtual_time: run this async test in virtual time*"])


def test_plugin_imports_few_modules() -> None:
    script = """
import pytest, sys
before = set(sys.modules)
import deltaloop.testing.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == [
        "deltaloop",
        "deltaloop._internal",
        "deltaloop._internal.lazy_names",
        "deltaloop.testing",
        "deltaloop.testing.pytest_plugin",
    ]
