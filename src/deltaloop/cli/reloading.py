"""``deltaloop run --embedded --reload``: restart the program when its files change, and keep the embedded server."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import typer

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import MissingExtraError
from deltaloop.api.plain_text import one_line
from deltaloop.cli.load_controllers import absolute, folder_of, load_declared
from deltaloop.cli.logging_flags import set_up_logging
from deltaloop.cli.main import print_error
from deltaloop.runtime.program.embedded import KeptServer, embedded_server
from deltaloop.runtime.program.options import RunOptions
from deltaloop.runtime.program.run import run_program

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext
    from multiprocessing.synchronize import Event

    from deltaloop.runtime.core.history import History, Reconciled
    from deltaloop.runtime.program.manager import Manager

_log: Final = logging.getLogger("deltaloop.runtime")

_PRELOADED: Final = ("deltaloop.cli.reloading", "deltaloop.cli.run", "deltaloop.runtime.program.health_server")
_DRAIN: Final = 0.5
_STOP: Final = 2.0
_STEP_MS: Final = 20  # changes within this time are one change
_DEBOUNCE_MS: Final = 200
_IDLE_POLL: Final = 0.05
_IDLE_TIMEOUT: Final = 10.0
_MOST_SHOWN: Final = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Arguments of a program's process; ``logs`` has level and format."""

    target: str
    options: RunOptions
    logs: tuple[str, str]
    kubeconfig: Mapping[str, Any]
    fresh: frozenset[str]
    loaded: Event


async def run_with_reload(target: str, options: RunOptions, *, logs: tuple[str, str]) -> None:
    """Run a program on an embedded server, and restart it after changes until canceled.

    Raises:
        LoadError: If the target cannot be found.
        MissingExtraError: If ``watchfiles`` is not installed.
    """
    try:
        from watchfiles import PythonFilter, awatch  # pyright: ignore[reportUnknownVariableType]
    except ModuleNotFoundError:
        raise MissingExtraError("--reload", "cli") from None
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    folder, loads = folder_of(target), {os.fspath(path): absolute(path) for path in options.load}
    python = PythonFilter()
    changes: AsyncGenerator[set[tuple[Any, str]]] = awatch(
        folder,
        *loads.values(),
        watch_filter=lambda change, path: python(change, path) or bool(_loaded_from(path, loads)),
        debounce=_DEBOUNCE_MS,
        step=_STEP_MS,
    )
    context = _context()
    fresh = frozenset(loads)
    program_options = replace(options, write_kubeconfig=None, drain_timeout=min(_DRAIN, options.drain_timeout))
    async with aclosing(changes), embedded_server(options) as server:
        _log.info("embedded API server is ready", extra={"url": server.url, "watched": str(folder)})
        while True:
            start = _Start(
                target=target,
                options=program_options,
                logs=logs,
                kubeconfig=server.kubeconfig(),
                fresh=fresh,
                loaded=context.Event(),
            )
            change = asyncio.ensure_future(anext(changes))  # before the program reads its files
            async with _running(context, start):
                changed = sorted({path for _, path in await change})
            _log.info("restarting the program", extra={"changed": changed})
            fresh = frozenset[str]() if start.loaded.is_set() else fresh
            for path in changed:
                fresh |= _loaded_from(path, loads)


def _loaded_from(path: str, loads: Mapping[str, Path]) -> frozenset[str]:
    """Return the ``--load`` options that a changed file belongs to."""
    changed = Path(path)
    return frozenset(name for name, place in loads.items() if changed == place or place in changed.parents)


def _context() -> ForkServerContext | SpawnContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_PRELOADED])
    return context


@asynccontextmanager
async def _running(context: ForkServerContext | SpawnContext, start: _Start) -> AsyncGenerator[None]:
    """Run a program, report its end, and stop it when the block ends."""
    process = context.Process(target=_program, args=(start,), name="program")
    await asyncio.to_thread(process.start)
    stopping = False

    async def until_end() -> None:
        await asyncio.to_thread(process.join)
        if not stopping:
            _log.warning("the program ended, waiting for a change", extra={"exit_code": process.exitcode})

    ended = asyncio.create_task(until_end(), name="reload: end of the program")
    try:
        yield
    finally:
        stopping = True
        try:
            process.terminate()
            await asyncio.wait({ended}, timeout=_STOP)
        finally:
            if process.is_alive():
                process.kill()
            await ended


def _program(start: _Start) -> None:
    """Run the program in its own process."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # Ctrl-C ends the first process, and that stops the program
    threading.Thread(target=_end_with_parent, name="reload: end with the first process", daemon=True).start()
    set_up_logging(*start.logs)
    try:
        declared = load_declared(start.target)
        kept = KeptServer(kubeconfig=start.kubeconfig, fresh=start.fresh, on_ready=partial(_ready, start))
        program = run_program(
            [*declared.controllers, *declared.webhooks], start.options, modules=[declared.module], kept=kept
        )
        asyncio.run(program)
    except DeltaloopError as error:
        print_error(error)
        raise SystemExit(2) from None


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


async def _ready(start: _Start, manager: Manager, history: History) -> None:
    """Wait until the first reconciles have ended, and print the objects that they changed."""
    start.loaded.set()
    with suppress(TimeoutError):
        async with asyncio.timeout(_IDLE_TIMEOUT):
            while any(len(loop.queue) or len(loop.runs) for loop in manager.loops):  # noqa: ASYNC110 - there is no event
                await asyncio.sleep(_IDLE_POLL)
    for line in changes_in(history.all(), most=_MOST_SHOWN):
        typer.echo(line)


def changes_in(reconciles: Iterable[Reconciled], *, most: int) -> Iterator[str]:
    """Return a line with the verbs and the changed fields of each object that reconciles changed, at most ``most``."""
    objects: dict[str, dict[str, None]] = {}
    for write in (write for run in reconciles for write in run.writes if write.effective):
        part = f"/{write.subresource}" if write.subresource else ""
        paths = write.paths or ()
        details = [f"{part[1:]}.{path}" if part and not path.startswith(part[1:]) else path for path in paths]
        objects.setdefault(f"{write.kind} {write.key}", {}).update(dict.fromkeys(details or [f"{write.verb}{part}"]))
    for name, changed in [*objects.items()][:most]:
        yield one_line(f"changed {name}: {', '.join(changed)}")
    if len(objects) > most:
        yield f"changed {len(objects) - most} more objects"
