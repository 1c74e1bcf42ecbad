"""``deltaloop plan``: show the changes that a version of a program would make."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import aclosing, redirect_stdout
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import notes_of
from deltaloop.api.plain_text import in_json, indented
from deltaloop.cli.connection import ContextFlag, KubeconfigFlag
from deltaloop.cli.load_controllers import TargetArgument, load_declared, target_name
from deltaloop.cli.option_flags import option_of
from deltaloop.client.config import ClientConfig
from deltaloop.client.connecting import load_config
from deltaloop.planning.cluster import cluster_objects, reading_client
from deltaloop.planning.comparing import OtherOutcome, compared
from deltaloop.planning.core.result import Plan
from deltaloop.planning.dry_run import dry_runs
from deltaloop.planning.plans import cluster_snapshot, file_snapshot, version_of
from deltaloop.planning.reading import PlanError
from deltaloop.planning.run import LoadedSnapshot, PlannedVersion, PlanOutcome, run_plan
from deltaloop.planning.snapshot_file import write_snapshot
from deltaloop.runtime.program.options import RunOptions

_WORKER: Final = "deltaloop.cli.other_version"
_WORKS_WITHIN: Final = 3600.0
_real_clock: Final = time.monotonic


def plan(
    target: TargetArgument,
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Snapshot of `deltaloop snapshot`, manifest, or folder of manifests. Defaults to the cluster.",
        ),
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            metavar="OTHER",
            help="Other version: a module, a wheel, a folder, or the Python interpreter of an environment. Show only "
            "differences from OTHER.",
        ),
    ] = "",
    server_dry_run: Annotated[
        bool,
        typer.Option("--server-dry-run", help="Send the first write of each object to the cluster with dryRun=All."),
    ] = False,
    namespace: Annotated[str | None, option_of(RunOptions, "namespace")] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="text|json", help="Output format.")] = "text",
    kubeconfig: KubeconfigFlag = None,
    context: ContextFlag = None,
) -> None:
    """Show the changes that the controllers of a module would make, without changing the cluster.

    The exit code is 0 without changes, 2 with changes, and 1 after a failure.
    """
    try:
        if output not in ("text", "json"):
            raise PlanError(f"--output must be text or json, got {output!r}.")
        with redirect_stdout(sys.stderr):  # prints of the program must not damage the output
            result = _made(target, source, against, server_dry_run, namespace or None, kubeconfig, context)
    except DeltaloopError as error:
        # Exit code 2 means changes, so errors must not use the code of other commands.
        typer.echo(f"error: {indented('; '.join([str(error), *notes_of(error)]))}", err=True)
        raise typer.Exit(1) from None
    encoded = in_json(msgspec.json.encode(result).decode())
    typer.echo(msgspec.json.format(encoded, indent=2) if output == "json" else str(result))
    raise typer.Exit(result.exit_code)


def _made(
    target: str,
    source: Path | None,
    against: str,
    server_dry_run: bool,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> Plan:
    module, controllers, webhooks = load_declared(target)
    version = version_of(target_name(target), module, controllers, webhooks, namespace=namespace)
    told = StageProgress(sys.stderr.isatty())
    config = None
    if source is None or server_dry_run:
        config = load_config(kubeconfig=kubeconfig, context=context or None)
    with tempfile.TemporaryDirectory(prefix="deltaloop-plan-") as folder:
        spooled = None if source is not None or not against else Path(folder) / "snapshot.jsonl"
        if source is None:
            assert config is not None
            snapshot = asyncio.run(_read(config, version, told, spooled))
        else:
            snapshot = file_snapshot(source, version, told)
        outcome = run_plan(version, snapshot, keep_requests=server_dry_run, keep_objects=bool(against), progress=told)
        result = outcome.plan
        if against:
            other = _other(against, target, (spooled or source or Path()).absolute(), Path(folder), namespace)
            result = compared(outcome, other, name=against)
    if server_dry_run:
        assert config is not None
        result = asyncio.run(_with_dry_runs(config, outcome, result, told))
    told.end()
    return result


async def _read(
    config: ClientConfig, version: PlannedVersion, told: Callable[[str, int], object], spooled: Path | None
) -> LoadedSnapshot:
    async with reading_client(config) as client:
        if spooled is None:
            return await cluster_snapshot(client, version, told)
        found = cluster_objects(client, version.controllers, version.webhooks, namespace=version.namespace)
        # Another process needs the objects, so keep them in a private file for the time of the plan.
        await write_snapshot(spooled, found, with_secrets=True, progress=told)
    return file_snapshot(spooled, version, told)


async def _with_dry_runs(
    config: ClientConfig, outcome: PlanOutcome, result: Plan, told: Callable[[str, int], object]
) -> Plan:
    async with aclosing(dry_runs(config, outcome.first_writes, told)) as found:
        problems = [problem async for problem in found]
    return msgspec.structs.replace(result, problems=(*result.problems, *problems), webhooks_not_asked=())


def _other(other: str, target: str, snapshot: Path, folder: Path, namespace: str | None) -> OtherOutcome:
    """Plan another version in a separate process, or raise PlanError."""
    path, interpreter, place = Path(other), sys.executable, Path.cwd()
    environment = dict(os.environ)
    if path.suffix == ".whl":
        place = folder / "wheel"
        try:
            with zipfile.ZipFile(path) as wheel:
                wheel.extractall(place)
        except (OSError, zipfile.BadZipFile) as error:
            raise PlanError(f"--against {other} must be a wheel: {error}.", place=other) from None
    elif path.is_dir():
        place = path.absolute()
    elif path.is_file() and os.access(path, os.X_OK) and path.suffix != ".py":
        interpreter = str(path.absolute())
    else:
        target = other
    if place != Path.cwd():
        added = [str(place), str(place / "src"), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, added))
    result = folder / "other.json"
    command = [interpreter, "-m", _WORKER, target, str(snapshot), str(result), *([namespace] if namespace else [])]
    done = subprocess.run(  # noqa: S603 - the interpreter that the user named, or this one
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=_WORKS_WITHIN, check=False
    )
    if done.returncode or not result.is_file():
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise PlanError(
            f"--against {other}: the other version cannot be planned: {last} It must have the module {target} and this "
            "version of deltaloop.",
            place=other,
        )
    return msgspec.json.decode(result.read_bytes(), type=OtherOutcome)


class StageProgress:
    """Stage and count on a terminal, written at most once per second."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._written_at = _real_clock()
        self._dirty = False

    def __call__(self, stage: str, count: int) -> None:
        now = _real_clock()
        if self._shown and now - self._written_at >= 1.0:
            self._written_at, self._dirty = now, True
            sys.stderr.write(f"\r{count} {stage}\x1b[K\r")
            sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._dirty:
            sys.stderr.write("\r\x1b[K")
