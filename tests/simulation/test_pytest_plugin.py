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


WRONG = """
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
"""

RIGHT = """
    @pytest.mark.simulate(runs=10, combinations=False)
    async def test_all_is_kept(deltaloop_world, names):
        await life(deltaloop_world, names)

    @pytest.mark.simulate(runs=6)
    async def test_one_is_kept(deltaloop_world):
        await life(deltaloop_world, ["noted"])

    async def test_another_one_is_run_once():
        pass
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # Others would load the package a second time, beside the one that the plugin has.
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


@pytest.mark.nightly
@pytest.mark.real_time
def test_tests_with_simulation_fixture_run_under_faults(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\ndeltaloop_async_tests = "virtual"\n'
    )
    pytester.makepyfile(test_right=textwrap.dedent(BROKER) + textwrap.dedent(RIGHT))
    pytester.makepyfile(test_wrong=textwrap.dedent(BROKER) + textwrap.dedent(WRONG))
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=3, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*the program crashes before the 2nd create of configmaps:*",
            "*password was deleted and recreated*",
            "*again: 'crash-before:create:configmaps:2'*",
            "*in one line: pytest '*::test_all_is_kept' --deltaloop-replay=FAULTS*",
            "*without faults, with seed 0: the scenario raised AssertionError: counted wrongly*",
        ]
    )
    result.stdout.fnmatch_lines(["*mark.simulate of *::test_option: *'run'*"])
    assert result.stdout.str().count("deltaloop_world must be a parameter of an async test") >= 2
    again = run(pytester, "test_right.py", "--deltaloop-replay=crash-before:create:configmaps:2")
    again.assert_outcomes(failed=1, passed=2)  # the other one has no such write
    assert "pytest_pyfunc_call" not in again.stdout.str(), "a failure is a story, and no traceback of ours"
