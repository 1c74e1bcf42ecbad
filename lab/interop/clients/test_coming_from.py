"""The programs that the "coming from" pages show do what the pages' own controller does, against the embedded server.

Those of Python run with ``make -C lab test-clients``, the one of Go with ``make -C lab test-go``; what is missing is
skipped by name.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.docs.snippets import blocks

import deltaloop as dl
from deltaloop.testing import eventually
from lab.interop.clients.serving import running
from lab.interop.go_client.go_modules import ASKED, GO

ROOT = Path(__file__).parents[3]
WEBSITE = dl.ResourceType[dl.Resource]("example.com", "v1", "Website", "websites")
CLIENTS = pytest.mark.skipif(
    not os.environ.get("DELTALOOP_CLIENTS"), reason="foreign clients run with `make -C lab test-clients`"
)


def crd() -> dict[str, Any]:
    schema: dict[str, Any] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": schema,
    }
    names = {"kind": "Website", "plural": "websites"}
    spec: dict[str, Any] = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "websites.example.com"}, "spec": spec}


def write_program(page: str, title: str, folder: Path) -> Path:
    """Write a page's program to a file of its title."""
    block = next(each for each in blocks(page, (ROOT / page).read_text()) if each.title == title)
    (folder / title).write_text(block.text + "\n")
    return folder / title


@asynccontextmanager
async def started(command: list[str], kubeconfig: Path, folder: Path) -> AsyncGenerator[None]:
    """Run a program and end it by its id."""
    with (folder / "log").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            yield
            assert process.returncode is None, (folder / "log").read_text()
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 20)
            except TimeoutError:
                process.kill()
                await process.wait()


async def does_its_work(command: list[str], folder: Path) -> None:
    """Make, change and delete a Website and its ConfigMap, and see what becomes of them."""
    with running(folder) as kubeconfig:
        async with dl.connect(kubeconfig=kubeconfig, namespace="default") as client:
            await client.create(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd())
            await eventually(lambda: client.create(WEBSITE, {"metadata": {"name": "hello"}, "spec": {"html": "one"}}))

            def page_is(html: str) -> Callable[[], Awaitable[bool]]:
                async def check() -> bool:
                    found = await client.get(dl.kinds.CONFIG_MAP, "hello")
                    return dict(found["data"]) == {"index.html": html}

                return check

            async def status() -> bool:
                return bool((await client.get(WEBSITE, "hello"))["status"]["page"] == "hello")

            async def gone() -> bool:
                return all(each.name != "hello" for each in await client.list(dl.kinds.CONFIG_MAP))

            async with started(command, kubeconfig, folder):
                await eventually(page_is("one"), within=30)
                await eventually(status, within=20)
                await client.patch(WEBSITE, "hello", {"spec": {"html": "two"}})
                await eventually(page_is("two"), within=20)
                await client.patch(dl.kinds.CONFIG_MAP, "hello", {"data": {"index.html": "other"}})
                await eventually(page_is("two"), within=20)
                await client.delete(dl.kinds.CONFIG_MAP, "hello")
                await eventually(page_is("two"), within=20)
                await client.delete(WEBSITE, "hello")
                await eventually(gone, within=20)


PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "kopf": ("kopf", "kopf_operator.py", ["-m", "kopf", "run", "-A"]),
    "official-client": ("kubernetes", "official.py", []),
}


@CLIENTS
@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", PROGRAMS)
async def test_python(page: str, tmp_path: Path) -> None:
    package, title, words = PROGRAMS[page]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    program = write_program(f"docs/coming-from/{page}.md", title, tmp_path)
    await does_its_work([sys.executable, *words, str(program)], tmp_path)


CONTROLLER_RUNTIME = "v0.25.2"
"""The version that the page names; it is fetched by the go command, and pinned by nothing else."""


def go(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the go command in a folder."""
    command = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin") or "go"
    return subprocess.run([command, *words], cwd=folder, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.timeout(900)
@ASKED
@GO
async def test_go(tmp_path: Path) -> None:
    write_program("docs/coming-from/controller-runtime.md", "main.go", tmp_path)
    for words in (["mod", "init", "website"], ["get", f"sigs.k8s.io/controller-runtime@{CONTROLLER_RUNTIME}"]):
        done = go(words, tmp_path)
        if done.returncode != 0:
            pytest.skip(f"controller-runtime cannot be had: {done.stderr.strip()[-300:]}")
    for words in (["mod", "tidy"], ["vet", "."], ["build", "-o", "website", "."]):
        done = go(words, tmp_path)
        assert done.returncode == 0, done.stderr
    await does_its_work([str(tmp_path / "website")], tmp_path)
