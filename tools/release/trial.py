"""Tries what was built: run by a fresh environment's Python, in a folder of its own, with the package alone.

It needs nothing of the checkout and none of the test tools. One line of result; the exit code is 1 if anything failed.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = Path(sys.executable).with_name("deltaloop.exe" if os.name == "nt" else "deltaloop")
LIMIT = 60


def the_package_is_the_installed_one() -> None:
    """Not the checkout, and complete."""
    import deltaloop

    home = Path(deltaloop.__file__).resolve().parent
    installed = Path(sysconfig.get_path("purelib")).resolve()
    assert installed in home.parents, f"deltaloop comes from {home}"
    assert (CHECKOUT / "src") not in home.parents, "this is the checkout"
    assert (home / "py.typed").is_file(), "py.typed is not shipped, so users' type checkers see nothing"
    missing = [name for name in import_module("deltaloop").__all__ if not hasattr(deltaloop, name)]
    assert not missing, f"exported, but not there: {missing}"


def a_bill_of_materials_is_installed() -> None:
    """The folder is that of PEP 770."""
    [file] = [each for each in metadata.files("deltaloop") or () if each.parent.name == "sboms"]
    listed = json.loads(file.read_text())["metadata"]["component"]
    assert (listed["name"], listed["version"]) == ("deltaloop", metadata.version("deltaloop"))


def no_test_tool_is_needed() -> None:
    """The environment has none; importing the testing room must not need one either."""
    import deltaloop.testing

    assert deltaloop.testing.run_virtual(asyncio.sleep(3600, "awake")) == "awake"
    assert "pytest" not in sys.modules


def the_command_explains_itself() -> None:
    """``--help`` and ``--version``."""
    shown = run("--help")
    assert "apiserver" in shown, shown
    assert "demo" in shown, shown
    assert metadata.version("deltaloop") == run("--version").strip()


def run(*arguments: str) -> str:
    """Run the installed command and return what it printed."""
    done = subprocess.run(
        [str(COMMAND), *arguments], capture_output=True, text=True, encoding="utf-8", timeout=LIMIT, check=False
    )
    assert done.returncode == 0, f"deltaloop {' '.join(arguments)} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def a_client_lists_from_the_embedded_server() -> None:
    """TLS and token included."""
    asyncio.run(asyncio.wait_for(list_once(), LIMIT))


async def list_once() -> None:
    """Start a server, write its kubeconfig, and list and create through a client that reads it."""
    from deltaloop.apiserver import ApiServer, ServerOptions
    from deltaloop.client import connect

    with tempfile.TemporaryDirectory() as folder:
        async with ApiServer(ServerOptions()) as server:
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(json.dumps(server.kubeconfig()))
            async with connect(kubeconfig=str(kubeconfig)) as client:
                namespaces = await client.list("v1/Namespace")
                assert "default" in {namespace.name for namespace in namespaces}
                made = {"metadata": {"name": "smoke", "namespace": "default"}, "data": {"a": "b"}}
                await client.create("v1/ConfigMap", made)
                listed = await client.list("v1/ConfigMap", namespace="default")
                assert [(each.name, each["data"]) for each in listed if each.name == "smoke"] == [("smoke", {"a": "b"})]


def the_demo_brings_its_controller_along() -> None:
    """The sample controller is in the wheel, and everything in the demo happens."""
    summary = json.loads(run("demo", "--output", "json"))
    assert summary["ok"], summary["failed"]


CHECKS: tuple[Callable[[], None], ...] = (
    the_package_is_the_installed_one,
    a_bill_of_materials_is_installed,
    no_test_tool_is_needed,
    the_command_explains_itself,
    a_client_lists_from_the_embedded_server,
    the_demo_brings_its_controller_along,
)


def main() -> int:
    """Run every check, whatever happens to the others."""
    failed = 0
    for check in CHECKS:
        try:
            check()
        except Exception:  # noqa: BLE001  # one failed check must not hide the others
            failed += 1
            print(f"FAILED {check.__name__.replace('_', ' ')}", file=sys.stderr)
            traceback.print_exc()
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
