"""Pytest plugin: async tests in virtual time, and fixtures for servers, clients and a network that fails.

Async tests are left to other plugins by default:

* ``deltaloop_async_tests = "virtual"`` in the configuration runs all async tests that no other plugin runs.
* ``@pytest.mark.virtual_time`` runs one test in virtual time, ``@pytest.mark.real_time`` on the real clock.

A test that leaves a task running fails. With ``deltaloop_network = "memory"``, tests in virtual time use in-memory
connections. By default, each test gets a separate embedded server. Alternatively, tests get a namespace on a shared
server:

* ``deltaloop_server_scope = "session"`` in the configuration shares one embedded server among all tests.
* ``--deltaloop-kubeconfig FILE`` (and ``--deltaloop-context NAME``) uses a real cluster. Fixtures that need the
  embedded server skip their tests.

With a shared or real server, async tests run on the real clock, and those marked ``virtual_time`` are skipped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pytest

if TYPE_CHECKING:
    from deltaloop import blocking
    from deltaloop.apiserver import ApiServer, ServerOptions
    from deltaloop.apiserver.embedding import StoreState
    from deltaloop.blocking import BackgroundLoop
    from deltaloop.client import Client
    from deltaloop.testing.deterministic_loop.item_loop import ItemLoop
    from deltaloop.testing.harness import Harness
    from deltaloop.testing.injected_faults.relay import Relay
    from deltaloop.testing.servers.cluster import Cluster

T = TypeVar("T")

_LOOP = pytest.StashKey["ItemLoop"]()
_FIRST_OBJECTS = pytest.StashKey["dict[str, StoreState]"]()
_KUBECONFIG = "--deltaloop-kubeconfig"
_SIMULATED = "deltaloop_world"
_CONTEXT = "--deltaloop-context"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "deltaloop_async_tests",
        "'virtual' runs async tests in virtual time; '' leaves them to other plugins",
        default="",
    )
    parser.addini(
        "deltaloop_network",
        "network of tests in virtual time: 'memory', or '' for the TCP of the machine",
        default="",
    )
    parser.addini(
        "deltaloop_server_scope",
        "'function' starts an embedded server for each test; 'session' shares one and gives each test a namespace",
        default="function",
    )
    group = parser.getgroup("deltaloop", "Kubernetes controllers")
    group.addoption(
        _KUBECONFIG,
        metavar="FILE",
        help=f"run the fixtures on a cluster instead of the embedded server (write {_KUBECONFIG}=FILE)",
    )
    group.addoption(_CONTEXT, metavar="NAME", help="context in the kubeconfig (default: the current context)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual_time: run this async test in virtual time")
    config.addinivalue_line("markers", "real_time: run this async test on the real clock")
    scope = config.getini("deltaloop_server_scope")
    if scope not in ("function", "session"):
        raise pytest.UsageError(f"deltaloop_server_scope must be 'function' or 'session', got {scope!r}")
    network = config.getini("deltaloop_network")
    if network not in ("", "memory"):
        raise pytest.UsageError(f"deltaloop_network must be 'memory' or '', got {network!r}")
    if config.getoption(_CONTEXT) and not config.getoption(_KUBECONFIG):
        raise pytest.UsageError(f"{_CONTEXT} requires {_KUBECONFIG}, so that tests never use a cluster by accident")
    path, given = config.getoption(_KUBECONFIG), config.invocation_params
    if path and _KUBECONFIG in given.args and not Path(path).absolute().is_relative_to(given.dir):
        # pytest searches its configuration before it knows our options, and takes a word without `-` for a test path.
        raise pytest.UsageError(
            f"use {_KUBECONFIG}={path}, because pytest would treat a separate path as a test, and would not find the "
            "configuration of this project"
        )


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Report the real cluster that tests use, if any."""
    path, context = config.getoption(_KUBECONFIG), config.getoption(_CONTEXT)
    return [f"deltaloop: on the cluster of {path}, context {context or '(current)'}"] if path else []


# -- async tests


def _is_ours(item: pytest.Item) -> bool:
    """Whether this plugin runs a test: it is async, and a marker or the configuration enables it."""
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(inspect.unwrap(item.obj)):
        return False
    if _SIMULATED in item.fixturenames:  # simulations run their own loops
        return False
    marked = any(item.get_closest_marker(name) for name in ("real_time", "virtual_time"))
    return marked or item.config.getini("deltaloop_async_tests") == "virtual"


def _server_is_elsewhere(item: pytest.Function) -> bool:
    """Whether a test uses a server that cannot run on its loop."""
    if "deltaloop_shared_server" in item.fixturenames:
        return True
    elsewhere = item.config.getoption(_KUBECONFIG) or item.config.getini("deltaloop_server_scope") == "session"
    return bool(elsewhere) and "deltaloop_cluster" in item.fixturenames


def _loop_of(item: pytest.Function) -> ItemLoop:
    """Return the loop of a test that this plugin runs, created for its first fixture or its body."""
    from deltaloop.testing.deterministic_loop.item_loop import ItemLoop

    if _LOOP not in item.stash:
        elsewhere = _server_is_elsewhere(item)
        if elsewhere and item.get_closest_marker("virtual_time"):
            pytest.skip("requires virtual time, but the server is shared or real")
        real = elsewhere or item.get_closest_marker("real_time") is not None
        item.stash[_LOOP] = ItemLoop(real=real, in_memory=item.config.getini("deltaloop_network") == "memory")
    return item.stash[_LOOP]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run an async test; leave other tests to other plugins."""
    if not _is_ours(pyfuncitem):
        return None
    from deltaloop.testing.deterministic_loop.item_loop import LeftoverTasksError

    function: Callable[..., Coroutine[Any, Any, object]] = pyfuncitem.obj
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    loop = _loop_of(pyfuncitem)
    leftover = ""
    try:
        loop.run_test(lambda: function(**arguments))
    except LeftoverTasksError as error:
        leftover = str(error)
    finally:
        loop.close()
    if leftover:
        pytest.fail(leftover, pytrace=False)
    return True


# -- fixtures


class _Place(Protocol):
    """Loop on which fixtures run: the loop of the test, or one in a thread."""

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T: ...

    def leave(self, manager: AbstractAsyncContextManager[Any]) -> None: ...


def _item(request: pytest.FixtureRequest) -> pytest.Function:
    item: object = request.node
    assert isinstance(item, pytest.Function)
    return item


def _place(request: pytest.FixtureRequest) -> _Place:
    item = _item(request)
    if not _is_ours(item):
        background: BackgroundLoop = request.getfixturevalue("_deltaloop_background")
        return background
    loop = _loop_of(item)
    request.addfinalizer(loop.close)  # the body may never run: another fixture may fail
    return loop


@contextmanager
def _entered(place: _Place, manager: AbstractAsyncContextManager[T]) -> Generator[T, None, None]:
    value = place.enter(manager)
    try:
        yield value
    finally:
        place.leave(manager)


def _need_embedded(request: pytest.FixtureRequest, name: str) -> None:
    if request.config.getoption(_KUBECONFIG):
        pytest.skip(f"{name} requires the embedded server, but the tests run on a cluster ({_KUBECONFIG})")


def _need_our_loop(request: pytest.FixtureRequest, name: str, instead: str) -> None:
    item = _item(request)
    if _is_ours(item):
        return
    if inspect.iscoroutinefunction(inspect.unwrap(item.obj)):
        here = (
            'Set deltaloop_async_tests = "virtual" in pytest\'s configuration, or mark this test with '
            f"@pytest.mark.virtual_time. If another plugin runs it: {instead}"
        )
    else:
        here = instead
    pytest.fail(f"{name} is for async tests that deltaloop's plugin runs. {here}", pytrace=False)


@pytest.fixture(scope="session")
def _deltaloop_background() -> Generator[BackgroundLoop, None, None]:
    from deltaloop.blocking import BackgroundLoop

    with BackgroundLoop(name="deltaloop-pytest") as loop:
        yield loop


@pytest.fixture(scope="session")
def deltaloop_server_options() -> ServerOptions:
    """Options of the embedded servers; override this fixture to change them.

    By default, servers use plain HTTP, which needs no certificates, and run garbage collection and namespace clean-up.
    """
    from deltaloop.testing.servers.cluster import default_server_options

    return default_server_options()


@pytest.fixture
def deltaloop_server(
    request: pytest.FixtureRequest, deltaloop_server_options: ServerOptions
) -> Generator[ApiServer, None, None]:
    """Empty embedded API server for this test; in a plain test it runs in a thread, so use only its address."""
    from deltaloop.apiserver import ApiServer

    _need_embedded(request, "deltaloop_server")
    begins_with = _first_objects(request.config, deltaloop_server_options)
    with _entered(_place(request), ApiServer(deltaloop_server_options, begins_with=begins_with)) as server:
        yield server


def _first_objects(config: pytest.Config, options: ServerOptions) -> StoreState | None:
    """Create the initial objects of a server once per session, because that takes longer than most tests."""
    from deltaloop.apiserver import ApiServer, ServerOptions

    if options.wall_clock is not ServerOptions().wall_clock:  # it may be specific to one test
        return None
    made = config.stash.setdefault(_FIRST_OBJECTS, {})
    if options.authorization_mode not in made:
        made[options.authorization_mode] = ApiServer(replace(options, data_dir=None, port=0)).first_objects()
    return made[options.authorization_mode]


@pytest.fixture(scope="session")
def deltaloop_shared_server(
    request: pytest.FixtureRequest, deltaloop_server_options: ServerOptions, _deltaloop_background: BackgroundLoop
) -> Generator[ApiServer, None, None]:
    """Embedded API server for the whole session, in a thread; each test uses its own namespace."""
    from deltaloop.apiserver import ApiServer

    _need_embedded(request, "deltaloop_shared_server")
    with _entered(_deltaloop_background, ApiServer(deltaloop_server_options)) as server:
        yield server


@pytest.fixture
def deltaloop_cluster(request: pytest.FixtureRequest) -> Cluster:
    """Cluster of this test, chosen by configuration and options; all fixtures below use it."""
    from deltaloop.testing.servers.cluster import Cluster, real_cluster

    path = request.config.getoption(_KUBECONFIG)
    if path:
        return real_cluster(str(path), request.config.getoption(_CONTEXT))
    shared = (
        request.config.getini("deltaloop_server_scope") == "session"
        or "deltaloop_shared_server" in request.fixturenames
    )
    server: ApiServer = request.getfixturevalue("deltaloop_shared_server" if shared else "deltaloop_server")
    return Cluster(server.kubeconfig(), embedded=True, shared=shared)


@pytest.fixture
def deltaloop_namespace(request: pytest.FixtureRequest, deltaloop_cluster: Cluster) -> Generator[str, None, None]:
    """Namespace for this test, deleted afterwards unless its server ends with the test."""
    from deltaloop.client import connect
    from deltaloop.testing.servers.cluster import namespace_for, own_namespace

    client = connect(kubeconfig=deltaloop_cluster.kubeconfig)
    namespace = own_namespace(client, namespace_for(_item(request).name), keep=not deltaloop_cluster.shared)
    with _entered(_place(request), namespace) as name:
        yield name


@pytest.fixture
def deltaloop_kubeconfig(deltaloop_cluster: Cluster, deltaloop_namespace: str, tmp_path: Path) -> Path:
    """Path of a kubeconfig file in the test's namespace, for other programs and clients."""
    from deltaloop.testing.servers.cluster import write_kubeconfig

    path = tmp_path / "kubeconfig"
    write_kubeconfig(path, deltaloop_cluster.in_namespace(deltaloop_namespace))
    return path


@pytest.fixture
def deltaloop_client(
    request: pytest.FixtureRequest, deltaloop_cluster: Cluster, deltaloop_namespace: str
) -> Generator[Client, None, None]:
    """Client in the test's namespace, for async tests that this plugin runs."""
    from deltaloop.client import connect
    from deltaloop.testing.servers.cluster import closing_in_time

    instead = "Use deltaloop_blocking_client, or `async with dl.connect(kubeconfig=deltaloop_kubeconfig)`."
    _need_our_loop(request, "deltaloop_client", instead)
    made = connect(kubeconfig=deltaloop_cluster.in_namespace(deltaloop_namespace))
    with _entered(_place(request), closing_in_time(made)) as client:
        yield client


@pytest.fixture
def deltaloop_blocking_client(
    request: pytest.FixtureRequest, deltaloop_cluster: Cluster, deltaloop_namespace: str
) -> Generator[blocking.Client, None, None]:
    """Blocking client in the test's namespace, for plain tests."""
    from deltaloop import blocking

    if _is_ours(_item(request)):
        pytest.fail("deltaloop_blocking_client would block the loop of an async test. Use deltaloop_client.")
    loop: BackgroundLoop = request.getfixturevalue("_deltaloop_background")
    made = blocking.connect(kubeconfig=deltaloop_cluster.in_namespace(deltaloop_namespace), loop=loop)
    with made as client:
        yield client


@pytest.fixture
def deltaloop_relay(request: pytest.FixtureRequest, deltaloop_cluster: Cluster) -> Generator[Relay, None, None]:
    """Relay in front of the server that injects network faults, for async tests that this plugin runs."""
    from deltaloop.testing.injected_faults.relay import Relay

    _need_our_loop(request, "deltaloop_relay", "Make the test async.")
    with _entered(_place(request), Relay(deltaloop_cluster.server)) as relay:
        yield relay


@pytest.fixture
def deltaloop_relay_client(
    request: pytest.FixtureRequest, deltaloop_relay: Relay, deltaloop_cluster: Cluster, deltaloop_namespace: str
) -> Generator[Client, None, None]:
    """Client that connects through ``deltaloop_relay``; ``deltaloop_client`` connects directly."""
    from deltaloop.client import connect
    from deltaloop.testing.servers.cluster import Cluster

    config = Cluster(
        deltaloop_cluster.in_namespace(deltaloop_namespace), embedded=deltaloop_cluster.embedded, shared=True
    )
    made = connect(kubeconfig=deltaloop_relay.kubeconfig(config.with_server_name()))
    with _entered(_place(request), made) as client:
        yield client


@pytest.fixture
def deltaloop_harness(
    request: pytest.FixtureRequest, deltaloop_cluster: Cluster, deltaloop_client: Client
) -> Generator[Harness, None, None]:
    """Harness that crashes, restarts and disconnects controllers, for async tests that this plugin runs."""
    from deltaloop.testing.harness import Harness

    _need_our_loop(request, "deltaloop_harness", "Make the test async.")
    own = deltaloop_cluster.embedded and not deltaloop_cluster.shared
    server: ApiServer | None = request.getfixturevalue("deltaloop_server") if own else None
    with _entered(_place(request), Harness(deltaloop_cluster, deltaloop_client, server=server)) as harness:
        yield harness
