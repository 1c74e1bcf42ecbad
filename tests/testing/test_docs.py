"""The tests on the page run on separate servers, on a shared server, and on another cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltaloop import apiserver, blocking, client
from deltaloop.runtime import controller
from deltaloop.testing.deterministic_loop import item_loop
from deltaloop.testing.injected_faults import relay
from deltaloop.testing.servers import cluster
from tests.blocking.serving import serving
from tests.docs.snippets import blocks
from tests.testing.inner_runs import FILTERS

# Imported here, so that the inner runs do not import them again.
USED_INSIDE = (apiserver, blocking, client, cluster, controller, item_loop, relay)
PAGE = "docs/how-to/test.md"
PROGRAMS = {block.title: block.text for block in blocks(PAGE, (Path(__file__).parents[2] / PAGE).read_text())}


def write(pytester: pytest.Pytester, *names: str, ini: str = "") -> None:
    pytester.makepyprojecttoml(f'[tool.pytest.ini_options]\n{FILTERS}\ndeltaloop_async_tests = "virtual"\n{ini}\n')
    pytester.syspathinsert()
    for name in names:
        (pytester.path / name).write_text(PROGRAMS[name])


def test_example_of_page_with_server_per_test(pytester: pytest.Pytester) -> None:
    write(pytester, "logins.py", "test_logins.py")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_example_of_page_with_cluster_models(pytester: pytest.Pytester) -> None:
    write(pytester, "test_models.py")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.parametrize("where", ["shared", "another cluster"])
def test_example_of_page_in_real_time(pytester: pytest.Pytester, tmp_path: Path, where: str) -> None:
    chosen = ["-p", "no:cacheprovider", "-k", "created"]  # the other test would take ten minutes
    if where == "shared":
        write(pytester, "logins.py", "test_logins.py", ini='deltaloop_server_scope = "session"')
        pytester.runpytest_inprocess(*chosen).assert_outcomes(passed=1, deselected=1)
        return
    write(pytester, "logins.py", "test_logins.py")
    with serving() as kubeconfig:
        cluster.write_kubeconfig(tmp_path / "real", kubeconfig)
        chosen.append(f"--deltaloop-kubeconfig={tmp_path / 'real'}")
        pytester.runpytest_inprocess(*chosen).assert_outcomes(passed=1, deselected=1)
