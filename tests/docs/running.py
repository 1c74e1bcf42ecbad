"""Runs a page's blocks: one namespace, one folder, one embedded server for the page.

Everything is on the real clock, because blocks may be programs with threads and loops of their own; the server is in a
thread. Blocks are compiled under the page's name and lines, so that a traceback points into the page.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import copy
import importlib
import inspect
import io
import os
import re
import sys
import tomllib
from collections.abc import Coroutine, Generator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, cast

import pytest

import deltaloop as dl
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.runtime.program.kubeconfig_file import write_kubeconfig
from tests.blocking.serving import serving
from tests.docs import console
from tests.docs.snippets import Block
from tests.docs.terminal import Terminals

ROOT = Path(__file__).parents[2]
LIMIT = 60.0
"""Seconds that one block may take."""


class SnippetError(AssertionError):
    """A snippet does not do what its page says."""


def program(block: Block) -> CodeType:
    """Compile a block of Python for its page's namespace."""
    tree = ast.parse("\n" * (block.line - 1) + block.text, filename=block.page)
    if block.ask.stops_after is not None:  # asyncio.run(main()) cannot be cancelled from outside: await main() can
        for statement in tree.body:
            if isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("asyncio.run("):
                call = cast("ast.Call", statement.value)
                statement.value = ast.copy_location(ast.Await(value=call.args[0]), call)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return cast("CodeType", compile(ast.fix_missing_locations(tree), block.page, "exec", flags, dont_inherit=True))


class Page:
    """One run of one page; enter it with ``open_page``."""

    def __init__(self, name: str, folder: Path, runner: asyncio.Runner) -> None:
        self.module = ModuleType("page_" + re.sub(r"\W", "_", name))
        self.module.__dict__.update(dl=dl, asyncio=asyncio)
        self._name = name
        self._folder = folder
        self._runner = runner
        self._printed = ""
        self._terminals = Terminals(folder)

    def close(self) -> None:
        """End the programs that commands have started."""
        try:
            self._terminals.close()
        except AssertionError as error:
            raise SnippetError(f"{self._name}: {error}") from error

    def abandon(self) -> None:
        """Kill them."""
        self._terminals.kill()

    def run(self, block: Block) -> None:
        """Run or check one block.

        Raises:
            SnippetError: It does not do what the page says; the cause is chained.
        """
        try:
            self._run(block)
        except SnippetError:
            raise
        except (Exception, SystemExit) as error:
            raise SnippetError(f"{block.where}: {type(error).__name__}: {error}") from error

    def _run(self, block: Block) -> None:
        if block.ask.prints:
            self._compare(block)
        elif block.language in ("yaml", "yml"):
            assert list(read_yaml_documents(block.text)), "no document"
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language in console.LANGUAGES:
            self._console(block)
        elif block.language == "python":
            self._python(block)
        if block.title and not block.ask.skip:
            self._keep(block)

    def _python(self, block: Block) -> None:
        text = block.text
        if block.ask.skip:
            compile(text, block.page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            return
        if block.title or block.ask.named:
            return
        if re.search(r"^(async )?def test_", text, re.MULTILINE):
            self._tests(block, self._folder / f"test_line_{block.line}.py")
            return
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self._execute(block)
        self._printed = printed.getvalue()

    def _execute(self, block: Block) -> None:
        expected = block.ask.fails_with
        try:
            outcome = eval(program(block), self.module.__dict__)
            if inspect.iscoroutine(outcome):
                self._runner.run(self._bounded(outcome, block.ask.stops_after))
            elif block.ask.stops_after is not None:
                raise SnippetError(f"{block.where}: it ended by itself")
        except Exception as error:
            if type(error).__name__ != expected:
                raise
        else:
            if expected:
                raise SnippetError(f"{block.where}: {expected} was not raised")

    async def _bounded(self, body: Coroutine[Any, Any, None], stops_after: float | None) -> None:
        task = asyncio.ensure_future(body)
        done, _ = await asyncio.wait([task], timeout=LIMIT if stops_after is None else stops_after)
        if done:
            await task
            if stops_after is not None:
                raise AssertionError("it ended by itself")
            return
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        if stops_after is None:
            raise AssertionError(f"it did not end within {LIMIT:g} s")

    def _console(self, block: Block) -> None:
        found = console.commands(block.language, block.text)
        assert found, "no command; in a console block they begin with `$ `"
        for command in found:
            console.check(command)
        for word in block.ask.without:
            assert any(word in command for command in found), f"no command has the word {word!r}"
        if block.ask.skip:
            return
        self._printed = self._terminals.run(found, skipped=block.ask.without)
        if block.language == "console":
            shown = [line for line in block.text.splitlines() if not line.startswith("$ ")]
            compare("\n".join(shown), self._printed, block.where)

    def _compare(self, block: Block) -> None:
        compare(block.text, self._printed, block.where)

    def _keep(self, block: Block) -> None:
        path = self._folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text + "\n")
        if block.language != "python":
            return
        if path.name.startswith("test_"):
            self._tests(block, path)
            return
        name = block.title.removesuffix(".py").replace("/", ".")
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        self.module.__dict__[name.partition(".")[0]] = importlib.import_module(name)

    def _tests(self, block: Block, path: Path) -> None:
        """Run a block of tests with pytest, in this process: another one would import everything anew."""
        path.write_text(block.text + "\n")
        flags = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(self._folder)]
        flags += ["-p", "no:unraisableexception"]  # the plugin of the outer run sees them, too, and collects once
        configuration = self._folder / "pytest.ini"
        configuration.write_text("[pytest]\ndeltaloop_async_tests = virtual\n")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = pytest.main([*flags, "-c", str(configuration), str(path)])
        assert code == 0, f"{block.where}:\n{printed.getvalue()}"


def compare(shown: str, printed: str, where: str) -> None:
    """Compare what a page shows with what was printed; ``...`` is anything.

    Raises:
        SnippetError: They differ.
    """
    pattern = re.escape(shown.strip()).replace(re.escape("..."), ".*?")
    if re.fullmatch(pattern, printed.strip(), re.DOTALL) is None:
        raise SnippetError(f"{where}: the page shows\n{shown.strip()}\nbut this was printed:\n{printed.strip()}")


@contextlib.contextmanager
def open_page(name: str, folder: Path) -> Generator[Page]:
    """Make everything that a page's blocks stand on, and undo it."""
    before, here, known = dict(os.environ), Path.cwd(), set(sys.modules)
    defaults = dl.RunOptions.__init__.__kwdefaults__ or {}  # pages run beside each other: each has free ports
    ports = {name: defaults[name] for name in ("metrics_bind_address", "health_probe_bind_address")}
    with serving() as kubeconfig, asyncio.Runner() as runner:
        both = copy.deepcopy(kubeconfig)
        both["contexts"].append({**both["contexts"][0], "name": "staging"})
        write_kubeconfig(folder / "kubeconfig", both)
        page = Page(name, folder, runner)
        try:
            os.environ["KUBECONFIG"] = str(folder / "kubeconfig")
            defaults.update(dict.fromkeys(ports, "127.0.0.1:0"))
            (folder / "examples").symlink_to(ROOT / "examples")
            os.chdir(folder)
            sys.path.insert(0, str(folder))
            sys.modules[page.module.__name__] = page.module
            try:
                yield page
            except BaseException:
                page.abandon()
                raise
            page.close()
        finally:
            defaults.update(ports)
            os.chdir(here)
            sys.path.remove(str(folder))
            os.environ.clear()
            os.environ.update(before)
            for added in set(sys.modules) - known:
                if str(getattr(sys.modules[added], "__file__", None) or "").startswith(str(folder)):
                    del sys.modules[added]
            sys.modules.pop(page.module.__name__, None)
