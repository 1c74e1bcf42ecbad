"""The plugin's fixtures, tried by running pytest in this process; servers of the inner runs are embedded ones."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from deltaloop import apiserver, blocking, client, kinds, wait
from deltaloop.testing.deterministic_loop import item_loop
from deltaloop.testing.injected_faults import relay
from deltaloop.testing.servers import cluster
from tests.blocking.serving import serving
from tests.testing.inner_runs import FILTERS

# Imported here, so that they are not imported anew by every inner run.
USED_INSIDE = (apiserver, blocking, client, cluster, item_loop, relay)

VIRTUAL = 'deltaloop_async_tests = "virtual"'
SESSION = f'{VIRTUAL}\ndeltaloop_server_scope = "session"'


def write(pytester: pytest.Pytester, body: str, *, ini: str = VIRTUAL) -> None:
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{FILTERS}\n{ini}\n")
    head = "import asyncio, pytest\nimport deltaloop as dl\nMAP = dl.kinds.CONFIG_MAP\n"
    pytester.makepyfile(head + textwrap.dedent(body))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rs", *arguments)


def test_each_test_has_own_server_in_virtual_or_real_time(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        from deltaloop.testing import eventually

        async def sees_a_change_after_an_hour(client, namespace):
            async with dl.InformerFactory(client) as factory:
                maps = factory.informer(MAP)
                await factory.wait_for_sync()
                assert len(maps.lister()) == 0  # nobody else's
                await client.create(MAP, {"metadata": {"name": "a"}})
                found = await eventually(lambda: maps.lister().find(f"{namespace}/a"))
                assert found.name == "a"

        async def test_virtual(deltaloop_client, deltaloop_namespace):
            await asyncio.sleep(3600)
            await sees_a_change_after_an_hour(deltaloop_client, deltaloop_namespace)
            assert asyncio.get_running_loop().time() >= 3600

        @pytest.mark.real_time
        async def test_real(deltaloop_client, deltaloop_namespace, deltaloop_server):
            await sees_a_change_after_an_hour(deltaloop_client, deltaloop_namespace)
            assert deltaloop_client.namespace == deltaloop_namespace
            assert deltaloop_namespace.startswith("test-real-")
            deltaloop_server.compact()

        async def test_leaves_a_task(deltaloop_client):
            asyncio.create_task(asyncio.sleep(3600))

        async def test_fails(deltaloop_client):
            assert 1 == 2
        """,
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*assert 1 == 2*"])
    result.stdout.fnmatch_lines(["*the test ended with 1 running task(s): <coroutine object sleep at *"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_plain_tests_have_server_thread_kubeconfig_and_blocking_client(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        import threading
        from deltaloop.blocking import InformerFactory
        from deltaloop.testing import eventually_blocking

        def test_blocking(deltaloop_blocking_client, deltaloop_namespace):
            client = deltaloop_blocking_client
            with InformerFactory(client) as factory:
                maps = factory.informer(MAP)
                factory.wait_for_sync(timeout=5)
                client.create(MAP, {"metadata": {"name": "a"}})
                assert eventually_blocking(lambda: maps.lister().find(f"{deltaloop_namespace}/a"))

        def test_own(deltaloop_blocking_client, deltaloop_server, deltaloop_kubeconfig, deltaloop_namespace):
            assert [m.name for m in deltaloop_blocking_client.list_all(MAP).items] == []
            assert deltaloop_kubeconfig.stat().st_mode & 0o777 == 0o600
            client = dl.connect(kubeconfig=deltaloop_kubeconfig)
            assert (client.namespace, client.config.server) == (deltaloop_namespace, deltaloop_server.url)

        def test_not_for_plain_tests(deltaloop_client):
            pass

        async def test_not_for_async_tests(deltaloop_blocking_client):
            pass

        def test_no_relay(deltaloop_relay):
            pass
        """,
    )
    result = run(pytester)
    result.assert_outcomes(passed=2, errors=3)
    result.stdout.fnmatch_lines(
        [
            "deltaloop_client is for async tests that deltaloop's plugin runs. Use deltaloop_blocking_client*",
            "*deltaloop_blocking_client would block the loop of an async test. Use deltaloop_client*",
            "deltaloop_relay is for async tests*",
        ]
    )


def test_unhandled_async_test_gets_error_with_remedy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        async def test_not_ours(deltaloop_client):
            pass
        """,
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(['*Set deltaloop_async_tests = "virtual" in pytest\'s configuration, or mark*'])


def test_relay_fixture_injects_faults_in_virtual_time(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        from deltaloop.testing import Stall, eventually

        async def test_stalls(deltaloop_client, deltaloop_relay, deltaloop_relay_client, deltaloop_namespace):
            async with dl.InformerFactory(deltaloop_relay_client) as factory:
                maps = factory.informer(MAP)
                await factory.wait_for_sync()
                deltaloop_relay.inject(Stall(duration=60))
                began = asyncio.get_running_loop().time()
                await deltaloop_client.create(MAP, {"metadata": {"name": "a"}})
                assert await eventually(lambda: maps.lister().find(f"{deltaloop_namespace}/a"), within=70, every=1)
                assert 60 <= asyncio.get_running_loop().time() - began <= 62
        """,
    )
    run(pytester).assert_outcomes(passed=1)


def test_shared_server_gives_each_test_a_namespace(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        seen = []

        async def test_first(deltaloop_client, deltaloop_cluster, deltaloop_namespace):
            assert (deltaloop_cluster.embedded, deltaloop_cluster.shared) == (True, True)
            await deltaloop_client.create(MAP, {"metadata": {"name": "a"}})
            seen.append((deltaloop_cluster.server, deltaloop_namespace))

        async def test_second(deltaloop_client, deltaloop_cluster, deltaloop_namespace):
            (server, namespace), = seen
            assert deltaloop_cluster.server == server
            assert deltaloop_namespace != namespace
            with pytest.raises(dl.NotFoundError):
                await deltaloop_client.get(MAP, "a")
            await deltaloop_client.wait_for(dl.kinds.NAMESPACE, namespace, dl.wait.deleted(), timeout=5)

        def test_third(deltaloop_blocking_client, deltaloop_shared_server):
            assert seen[0][0] == deltaloop_shared_server.url

        @pytest.mark.virtual_time
        async def test_virtual(deltaloop_client):
            pass

        async def test_virtual_without_a_server():
            await asyncio.sleep(3600)
        """,
        ini=SESSION,
    )
    result = run(pytester)
    result.assert_outcomes(passed=4, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*requires virtual time, but the server is shared or real*"])


def test_kubeconfig_option_selects_other_cluster(pytester: pytest.Pytester, tmp_path: Path) -> None:
    write(
        pytester,
        """
        async def test_async(deltaloop_client, deltaloop_cluster):
            assert (deltaloop_cluster.embedded, deltaloop_cluster.shared) == (False, True)
            await deltaloop_client.create(MAP, {"metadata": {"name": "a"}})

        async def test_relay(deltaloop_relay, deltaloop_relay_client):
            await deltaloop_relay_client.create(MAP, {"metadata": {"name": "a"}})
            assert deltaloop_relay.accepted == 1  # what the namespace was made with went straight

        def test_plain(deltaloop_blocking_client, deltaloop_kubeconfig):
            deltaloop_blocking_client.create(MAP, {"metadata": {"name": "a"}})
            from deltaloop import blocking

            with blocking.connect(kubeconfig=deltaloop_kubeconfig) as another:
                assert another.get(MAP, "a").name == "a"

        def test_embedded(deltaloop_server):
            pass

        async def test_shared(deltaloop_shared_server):
            pass
        """,
    )
    file = tmp_path / "real"
    with serving() as kubeconfig, blocking.connect(kubeconfig=kubeconfig) as outside:
        cluster.write_kubeconfig(file, kubeconfig)
        result = run(pytester, f"--deltaloop-kubeconfig={file}", "--deltaloop-context", "deltaloop")
        result.assert_outcomes(passed=3, skipped=2)
        result.stdout.fnmatch_lines(
            [
                f"deltaloop: on the cluster of {file}, context deltaloop",
                "SKIPPED*deltaloop_server requires the embedded server, but the tests run on a cluster*",
                "SKIPPED*deltaloop_shared_server requires the embedded server*",
            ]
        )
        for namespace in outside.list(kinds.NAMESPACE).items:
            if namespace.name.startswith("test-"):
                outside.wait_for(kinds.NAMESPACE, namespace.name, wait.deleted(), timeout=5)


def test_invalid_options_are_rejected(pytester: pytest.Pytester) -> None:
    write(pytester, "def test_it(): pass\n")
    result = run(pytester, "--deltaloop-context", "x")
    result.stderr.fnmatch_lines(["*--deltaloop-context requires --deltaloop-kubeconfig*"])
    write(pytester, "def test_it(): pass\n", ini='deltaloop_server_scope = "module"')
    run(pytester).stderr.fnmatch_lines(["*deltaloop_server_scope must be 'function' or 'session', got 'module'*"])
    write(pytester, "def test_it(): pass\n", ini='deltaloop_network = "none"')
    run(pytester).stderr.fnmatch_lines(["*deltaloop_network must be 'memory' or '', got 'none'*"])
    write(pytester, "def test_it(deltaloop_cluster): pass\n")
    result = run(pytester, "--deltaloop-kubeconfig", "/elsewhere")
    result.stderr.fnmatch_lines(["*use --deltaloop-kubeconfig=/elsewhere*"])
    result = run(pytester, "--deltaloop-kubeconfig", "missing")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*missing*No such file or directory*"])


def test_failing_fixture_leaves_no_server(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        @pytest.fixture
        def broken(deltaloop_client):
            raise LookupError("broken")

        async def test_it(broken):
            pass

        @pytest.fixture
        def after(deltaloop_client):
            yield
            raise LookupError("teardown")

        async def test_teardown(after):
            pass

        async def test_goes_on(deltaloop_client):
            await deltaloop_client.list(MAP)
        """,
    )
    run(pytester).assert_outcomes(errors=2, passed=2)


def test_async_tests_of_other_plugins_use_server_thread(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        async def test_theirs(deltaloop_kubeconfig):
            async with dl.connect(kubeconfig=deltaloop_kubeconfig) as client:
                await client.create(MAP, {"metadata": {"name": "a"}})
        """,
        ini="",
    )
    pytester.makeconftest(
        """
        import asyncio

        def pytest_pyfunc_call(pyfuncitem):
            asyncio.run(pyfuncitem.obj(pyfuncitem.funcargs["deltaloop_kubeconfig"]))
            return True
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_memory_network_is_enabled_by_configuration(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        """
        from deltaloop.testing import MemoryNetwork

        async def test_virtual(deltaloop_client):
            await deltaloop_client.list(dl.kinds.CONFIG_MAP)
            assert isinstance(asyncio.get_running_loop().network, MemoryNetwork)

        @pytest.mark.real_time
        async def test_real(deltaloop_client):
            await deltaloop_client.list(dl.kinds.CONFIG_MAP)
            assert asyncio.get_running_loop().network is None
        """,
        ini=f'{VIRTUAL}\ndeltaloop_network = "memory"',
    )
    run(pytester).assert_outcomes(passed=2)
