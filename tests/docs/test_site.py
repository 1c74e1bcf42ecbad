"""The site has every page and every public name; what is wrong in a built site is found."""

from __future__ import annotations

import importlib
import re
import tomllib
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest
from tools.public_names import definition, homes, is_internal, packages
from tools.site import links, reference, stage

from deltaloop.api.yaml_reader import read_yaml

ROOT = Path(__file__).parents[2]


def in_nav(entry: Any) -> set[str]:
    """Return the pages that a part of ``nav`` names."""
    if isinstance(entry, str):
        return {entry}
    values: Any = cast("dict[str, Any]", entry).values() if isinstance(entry, dict) else entry
    return {page for value in values for page in in_nav(value)}


def test_each_page_is_in_navigation() -> None:
    config: Any = read_yaml((ROOT / "mkdocs.yml").read_text())
    written = {path.relative_to(stage.DOCS).as_posix() for path in stage.DOCS.rglob("*.md")}
    every = written | set(reference.pages()) | set(stage.ROOT_PAGES.values())
    assert in_nav(config["nav"]) == every, "mkdocs.yml, at the end"


def test_site_uses_search_and_mkdocstrings_only() -> None:
    config: Any = read_yaml((ROOT / "mkdocs.yml").read_text())
    assert [plugin if isinstance(plugin, str) else next(iter(plugin)) for plugin in config["plugins"]] == [
        "search",
        "mkdocstrings",
    ]


def test_each_public_name_is_in_reference() -> None:
    paths = {
        line.removeprefix("::: ")
        for page in reference.pages().values()
        for line in page.splitlines()
        if line.startswith("::: ")
    }
    for package in packages():
        if is_internal(package) or package.endswith(".adapters"):
            continue
        for name in homes(package):
            if not isinstance(getattr(importlib.import_module(package), name), ModuleType):
                assert f"{definition(package, name)}.{name}" in paths, f"{package}.{name}"
    listed = reference.facade_page()
    assert all(f"`dl.{name}`" in listed for name in homes("deltaloop"))


def test_each_command_and_option_is_in_reference() -> None:
    page = reference.command_line_page()
    for command in ("apiserver", "run", "generate rbac", "why", "leader-elect", "cel eval", "demo"):
        assert f"## deltaloop {command}\n" in page
    assert "`--write-kubeconfig`" in page
    assert "`--version`" in page


def test_links_are_rewritten_to_site_pages() -> None:
    source = ROOT / "docs" / "how-to" / "kinds.md"
    text = (
        "[a](../install.md#choose-extras) [b](../../README.md) [c](../../examples/workqueue/controller.py) "
        "[d](../../src/deltaloop/errors.py) [`e`](../../Makefile) "
        "[f](https://kubernetes.io) [g](#here) [h](nowhere.md)\n"
        "```text\n[a](../../README.md)\n```\n"
    )
    assert stage.site_links(text, source, "how-to/kinds.md") == (
        "[a](../install.md#choose-extras) [b](../index.md) c (`examples/workqueue/controller.py`) "
        "d (`src/deltaloop/errors.py`) `e` [f](https://kubernetes.io) [g](#here) [h](nowhere.md)\n"
        "```text\n[a](../../README.md)\n```\n"
    )


def test_snippet_comments_are_removed() -> None:
    text = "a\n<!-- snippet: hidden\nx = 1\n-->\n<!-- snippet: prints -->\n```text\n1\n```\n<!-- diagram: x -->\n"
    assert stage.without_comments(text) == "a\n```text\n1\n```\n<!-- diagram: x -->\n"


GOOD = (
    '<a href="b.html#there">b</a><img src="c.svg" alt="c"><a href="https://kubernetes.io">k</a><a href="#x" id="x"></a>'
)
WRONG = {
    '<a href="nowhere.html">b</a>': "nowhere.html: is not there",
    '<a href="b.html#nowhere">b</a>': "no such anchor",
    '<a href="#nowhere">b</a>': "no such anchor",
    '<img src="nowhere.svg" alt="c">': "is not there",
    '<img src="c.svg">': "without words",
    '<script src="https://cdn.example/x.js"></script>': "loaded from elsewhere",
    '<link rel="stylesheet" href="//fonts.example/x.css">': "loaded from elsewhere",
    '<a href="../../x.html">b</a>': "leads out of the site",
}


def site(folder: Path, page: str) -> Path:
    (folder / "index.html").write_text(f"<html><body>{page}</body></html>")
    (folder / "b.html").write_text('<h1 id="there">b</h1>')
    (folder / "c.svg").write_text("<svg/>")
    return folder


def test_valid_site_passes(tmp_path: Path) -> None:
    assert links.check(site(tmp_path, GOOD)) == ([], 3, 1)


@pytest.mark.parametrize("page", WRONG)
def test_wrong_site_is_detected(page: str, tmp_path: Path) -> None:
    wrong, _, _ = links.check(site(tmp_path, GOOD + page))
    assert len(wrong) == 1
    assert WRONG[page] in wrong[0]


def test_empty_site_is_rejected(tmp_path: Path) -> None:
    assert links.check(tmp_path)[0]


def required() -> set[tuple[str, str]]:
    """Return name and least version of everything that pyproject.toml asks for."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [*config["project"]["optional-dependencies"].values(), *config["dependency-groups"].values()]
    every: list[Any] = [
        *config["project"]["dependencies"],
        *config["build-system"]["requires"],
        *chain.from_iterable(groups),
    ]
    texts = [re.sub(r"\[.*?\]", "", text) for text in every if isinstance(text, str)]
    return {(name, version) for name, _, version in (text.partition(">=") for text in texts)}


def missing(page: str) -> set[tuple[str, str]]:
    """Return what is required and has no row with its name and version."""
    listed: set[tuple[str, str]] = set()
    for row in re.findall(r"^\| (.*?) \| (.*?) \|", page, re.MULTILINE):
        listed |= {*zip(row[0].split(", "), row[1].split(", "), strict=False)}
    return required() - listed


def test_each_dependency_is_listed_with_version() -> None:
    page = (ROOT / "internals" / "dependencies.md").read_text()
    assert missing(page) == set(), "internals/dependencies.md, the table at the top"
    version = dict(required())["aiohttp"]
    assert missing(page.replace(f"| aiohttp | {version} |", "| aiohttp | 3.11 |")) == {("aiohttp", version)}
