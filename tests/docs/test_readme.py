"""What the README shows is true: its controller runs, its commands and links exist."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.runtime.program.kubeconfig_file import write_kubeconfig

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
POD: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "web", "image": "web"}]},
    "status": {"phase": "Pending"},
}


def controller() -> str:
    found = re.search(r"<!-- snippet: readme_controller -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_controller_has_at_most_thirty_lines() -> None:
    assert len([line for line in controller().splitlines() if line.strip()]) <= 30


@pytest.mark.slow
@pytest.mark.real_time
async def test_the_controller_runs(tmp_path: Path) -> None:
    program, kubeconfig = tmp_path / "controller.py", tmp_path / "config"
    program.write_text(controller())
    async with ApiServer(ServerOptions()) as server, dl.connect(kubeconfig=server.kubeconfig()) as client:
        write_kubeconfig(kubeconfig, server.kubeconfig())
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",
            str(program),
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(30):
                await client.create(dl.kinds.POD, POD)
                line = (await process.stdout.readline()).decode()
                assert re.fullmatch(
                    r"default/web Pending because of informer (add|initial) Pod default/web \(\d+\)\n", line
                )
                await client.delete(dl.kinds.POD, "web", namespace="default")
                line = (await process.stdout.readline()).decode()
                # The pod is marked before it is removed; the controller may see both, or find both causes at once.
                marked = r"default/web Pending because of informer update Pod default/web \(\d+→\d+\)\n"
                if re.fullmatch(marked, line):
                    line = (await process.stdout.readline()).decode()
                gone = r"default/web is gone because of( informer (update|delete) Pod default/web \(\d+(→\d+)?\))+\n"
                assert re.fullmatch(gone, line)
        finally:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_to_files_lead_somewhere(page: str) -> None:
    path = ROOT / page if (ROOT / page).exists() else ROOT / "docs" / page
    prose = re.sub(r"```.*?```|<!--.*?-->", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        if target.startswith("reference/"):
            continue  # made by `make docs`, which checks it
        assert (path.parent / target).exists(), f"{page}: {target}"


def test_the_make_targets_it_names_exist() -> None:
    for folder, target in set(
        re.findall(r"\bmake (?:-C (lab) )?([a-z-]+)", README + (ROOT / "CONTRIBUTING.md").read_text())
    ):
        makefile = (ROOT / folder / "Makefile").read_text()
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_pages_agree_on_whether_an_index_has_it() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("Containerfile")]
    texts = {str(each.relative_to(ROOT)): " ".join(each.read_text().split("\n# ")) for each in pages}
    without = {name for name, text in texts.items() if re.search(r"[Nn]o version is on a package index yet", text)}
    # A sentence may name an extra, for those who have the rest: pip adds what that needs.
    from_it = {
        name
        for name, text in texts.items()
        if re.search(r"^ *(?:RUN )?pip install [^\n]*(?<![/\w])deltaloop\b(?!-)", text, re.MULTILINE)
    }
    assert not (without and from_it)
    assert "README.md" in without | from_it
