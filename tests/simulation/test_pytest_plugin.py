"""Tests that are run as simulations."""

from __future__ import annotations

import textwrap

import pytest

BROKER = """
    import pytest
    import deltaloop as dl

    MAP = dl.kinds.CONFIG_MAP

    def broker(names):
        @dl.controller(MAP, name="broker", writes=[MAP])
        async def reconcile(request, ctx):
            if request.name != "broker" or await ctx.client.find(MAP, names[-1]) is not None:
                return
            for name in names:
                if await ctx.client.find(MAP, name) is not None:
                    await ctx.client.delete(MAP, name)
                await ctx.client.create(MAP, {"metadata": {"name": name}})
        return reconcile

    @pytest.fixture
    def names():
        return ["password", "noted"]

    async def life(world, names):
        await world.client.create(MAP, {"metadata": {"name": "broker"}})
        await world.start(broker(names))
        await world.settled()
"""


def write(pytester: pytest.Pytester, body: str) -> None:
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\ndeltaloop_async_tests = "virtual"\n'
    )
    pytester.makepyfile(textwrap.dedent(BROKER) + textwrap.dedent(body))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # Others would load the package a second time, beside the one that the plugin has.
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


@pytest.mark.real_time
def test_a_test_that_names_the_world_is_run_under_faults(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        @pytest.mark.simulate(runs=10, combinations=False)
        async def test_all_is_kept(deltaloop_world, names):
            await life(deltaloop_world, names)

        @pytest.mark.simulate(runs=6)
        async def test_one_is_kept(deltaloop_world):
            await life(deltaloop_world, ["noted"])

        async def test_another_one_is_run_once():
            pass
        """,
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*the program crashes before the 2nd create of configmaps:*",
            "*password was deleted and made again*",
            "*again: 'crash-before:create:configmaps:2'*",
            "*in one line: pytest '*::test_all_is_kept' --deltaloop-replay=FAULTS*",
        ]
    )
    assert "pytest_pyfunc_call" not in result.stdout.str()
    again = run(pytester, "-k", "all_is_kept", "--deltaloop-replay=crash-before:create:configmaps:2")
    again.assert_outcomes(failed=1)
    run(pytester, "-k", "all_is_kept", "--deltaloop-replay=busy:create:configmaps:1").assert_outcomes(passed=1)


@pytest.mark.real_time
def test_a_test_that_is_wrong_without_faults_and_options_that_are_none_are_said(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        async def test_wrong(deltaloop_world):
            assert 1 + 1 == 3, "counted wrongly"

        @pytest.mark.simulate(run=6)
        async def test_option(deltaloop_world):
            pass

        def test_no_loop(deltaloop_world):
            pass

        @pytest.fixture
        def through(deltaloop_world):
            return deltaloop_world

        async def test_by_another_fixture(through):
            pass
        """,
    )
    result = run(pytester)
    result.assert_outcomes(failed=2, errors=2)
    result.stdout.fnmatch_lines(
        ["*without any fault, with seed 0: the scenario raised AssertionError: counted wrongly*"]
    )
    result.stdout.fnmatch_lines(["*mark.simulate of *::test_option: *'run'*"])
    assert result.stdout.str().count("deltaloop_world is for async tests that name it themselves") >= 2
