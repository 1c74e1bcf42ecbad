"""The tests that docs/testing.md shows are run, on a server of its own, on a shared one, and on another cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deltaloop import apiserver, blocking, client
from deltaloop.testing.deterministic_loop import item_loop
from deltaloop.testing.injected_faults import relay
from deltaloop.testing.servers import cluster
from tests.blocking.serving import serving

# Imported here, so that they are not imported anew by every inner run.
USED_INSIDE = (apiserver, blocking, client, cluster, item_loop, relay)
PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


CONTROLLER, ENVIRONMENT = "<!-- snippet: test_controller -->", "<!-- snippet: test_environment -->"


def write(pytester: pytest.Pytester, *, comment: str = CONTROLLER, ini: str = "") -> None:
    found = re.search(rf"{comment}\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    pytester.makepyprojecttoml(
        f'[tool.pytest.ini_options]\nfilterwarnings = ["error"]\ndeltaloop_async_tests = "virtual"\n{ini}\n'
    )
    pytester.makepyfile(test_controller=found[1])


def test_on_a_server_of_its_own(pytester: pytest.Pytester) -> None:
    write(pytester)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_with_the_rest_of_the_cluster(pytester: pytest.Pytester) -> None:
    write(pytester, comment=ENVIRONMENT)
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


@pytest.mark.parametrize("where", ["shared", "another cluster"])
def test_on_the_real_clock(pytester: pytest.Pytester, tmp_path: Path, where: str) -> None:
    chosen = ["-p", "no:cacheprovider", "-k", "sizes"]  # the other one would really take ten minutes
    if where == "shared":
        write(pytester, ini='deltaloop_server_scope = "session"')
        pytester.runpytest_inprocess(*chosen).assert_outcomes(passed=1, deselected=1)
        return
    write(pytester)
    with serving() as kubeconfig:
        cluster.write_kubeconfig(tmp_path / "real", kubeconfig)
        chosen.append(f"--deltaloop-kubeconfig={tmp_path / 'real'}")
        pytester.runpytest_inprocess(*chosen).assert_outcomes(passed=1, deselected=1)
