"""controller-runtime's own suites, unmodified, against the embedded server: webhooks, builders, clients, envtest.

They come from its Go module, and find the server as a cluster that is there already (``USE_EXISTING_CLUSTER``). They
need Go and its module proxy, and a minute the first time: ``make -C lab test-go``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.interop.clients.serving import running
from lab.interop.go_client.go_modules import ASKED, GO, run_go

pytestmark = [pytest.mark.slow, pytest.mark.real_time, pytest.mark.timeout(900), ASKED, GO]
HERE = Path(__file__).parent
_COUNTS = re.compile(r"Ran (\d+) of \d+ Specs.*\n.*?(\d+) Passed.*?(\d+) Failed")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def module() -> Path:
    """The module's folder."""
    fetched = run_go("mod", "download", "sigs.k8s.io/controller-runtime", folder=HERE)
    if fetched.returncode != 0:
        pytest.skip(f"controller-runtime cannot be had: {fetched.stderr.strip()[-300:]}")
    return Path(run_go("list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime", folder=HERE).stdout.strip())


# Three of the webhook suite's specs start a server at one port, each while the one before may still close its own: its
# port is in use then, now and then. So each has a run of its own.
_SERVING = "when running a webhook server"
RUNS: dict[str, tuple[tuple[str, int], ...]] = {
    "webhook": (
        (f"-ginkgo.skip={_SERVING}", 5),
        (f"-ginkgo.focus={_SERVING} with a manager should reject create request for webhook", 1),
        (f"-ginkgo.focus={_SERVING} with a manager should reject create request for multi-webhook", 1),
        (f"-ginkgo.focus={_SERVING} without a manager", 1),
    ),
    "builder": (("", 72),),
    "client": (("", 311),),
    "envtest": (("", 28),),
}


@pytest.mark.parametrize(
    ("suite", "chosen", "least"), [(suite, *run) for suite, runs in RUNS.items() for run in runs], ids=str
)
def test_suite(suite: str, chosen: str, least: int, module: Path, tmp_path: Path) -> None:
    with running(tmp_path) as kubeconfig:
        environ = {"USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(kubeconfig)}
        done = run_go("test", "-count=1", "-v", f"./pkg/{suite}", *filter(None, [chosen]), folder=module, **environ)
    said = _COLOURS.sub("", done.stdout)
    if "no required module provides" in done.stderr or "dial tcp" in done.stderr:
        pytest.skip(f"controller-runtime's test modules cannot be had: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, said[-5000:] + done.stderr[-2000:]
    counted = _COUNTS.search(said)
    assert counted is not None, said[-2000:]
    ran, passed, failed = map(int, counted.groups())
    assert (passed, failed) == (ran, 0)
    assert passed >= least
