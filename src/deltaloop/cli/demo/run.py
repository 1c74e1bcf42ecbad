"""``deltaloop demo``: an embedded server, two replicas of the sample controller, and the checked steps."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, Final, Literal

import typer

from deltaloop.api import kinds
from deltaloop.api.redaction import SecretText
from deltaloop.api.yaml_reader import read_yaml
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.apiserver.options import CLUSTER_CONTROLLERS
from deltaloop.cache import InformerFactory
from deltaloop.cli.demo.replicas import DemoReplica, LogLine
from deltaloop.cli.demo.sample_controller.controller import CRD_FILE
from deltaloop.cli.demo.screen import Json, Screen, Terminal
from deltaloop.cli.demo.story import Story, Summary
from deltaloop.cli.demo.world import FOO, StepFailedError, World
from deltaloop.cli.logging_flags import LogLevelFlag, set_up_logging
from deltaloop.cli.until_signal import run_until_signal
from deltaloop.client import Client, connect
from deltaloop.runtime.program.kubeconfig_file import write_kubeconfig

TIME_LIMIT: Final = 28.0
_LEASE: Final = "3,2,0.4"


def demo(
    *,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the server and the replicas running at the end, so that you can use kubectl."
        ),
    ] = False,
    output: Annotated[
        Literal["text", "json"],
        typer.Option("--output", "-o", metavar="text|json", help="Output format. json prints only the summary."),
    ] = "text",
    port: Annotated[int, typer.Option(help="Port of the server. 0 chooses a free port.", min=0, max=65535)] = 0,
    log_dir: Annotated[
        Path | None, typer.Option(help="Folder for the logs of the replicas. The logs are discarded by default.")
    ] = None,
    log_level: LogLevelFlag = "WARNING",
) -> None:
    """Run two replicas of a sample controller against an embedded API server, and stop the leader.

    The demo takes up to 30 seconds. The exit code is 1 if a step fails.
    """
    set_up_logging(log_level)
    if log_dir is not None:
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise typer.BadParameter(f"--log-dir {log_dir} cannot be created: {error.strerror}") from None
    options = DemoOptions(keep=keep, port=port, log_dir=log_dir)
    summary = run_until_signal(run_demo(options, Json(typer.echo) if output == "json" else Terminal()), interrupted=130)
    raise typer.Exit(0 if summary.ok else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Options of the demo.

    Attributes:
        keep: Whether to leave the server and the controller running after the last step, until canceled.
        port: Port of the server. 0 selects a free port.
        token: Bearer token of the server. None generates a random token.
        log_dir: Folder for the logs of the replicas. None discards them.
        log_level: Minimum log level of the replicas.
        time_limit: Timeout for all steps in seconds.
    """

    keep: bool = False
    port: int = 0
    token: SecretText | None = None
    log_dir: Path | None = None
    log_level: str = "INFO"
    time_limit: float = TIME_LIMIT


async def run_demo(options: DemoOptions, screen: Screen) -> Summary:
    """Run the demo, display its steps, and return the summary; at the end all started processes have stopped."""
    begun = monotonic()
    with tempfile.TemporaryDirectory(prefix="deltaloop-demo-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        async with _stage(options, screen, kubeconfig) as story:
            await _tell(story, options)
            story.summary.seconds = round(monotonic() - begun, 3)
            story.summary.kubeconfig = str(kubeconfig) if options.keep else ""
            screen.end(story.summary)
            if options.keep and story.summary.ok:
                await _keep_running(screen, kubeconfig)
            return story.summary


async def _tell(story: Story, options: DemoOptions) -> None:
    summary = story.summary
    try:
        async with asyncio.timeout(options.time_limit):
            await story.tell()
            if not options.keep:
                await story.stop_replicas()
        summary.ok = True
    except StepFailedError as error:
        summary.failed = str(error)
    except TimeoutError:
        step = summary.steps[-1].name if summary.steps else "the first step"
        summary.failed = f"the demo exceeded its timeout of {options.time_limit:g} s in the step {step!r}"
    summary.reconciles = story.world.reconciles
    summary.triggers = dict(story.world.triggers)


@asynccontextmanager
async def _stage(options: DemoOptions, screen: Screen, kubeconfig: Path) -> AsyncGenerator[Story, None]:
    begun = monotonic()
    server_options = ServerOptions(port=options.port, token=options.token, controllers=CLUSTER_CONTROLLERS)
    async with ApiServer(server_options) as server:
        write_kubeconfig(kubeconfig, server.kubeconfig())
        screen.say("server", f"ready at {server.url} after {(monotonic() - begun) * 1000:.0f} ms")
        async with connect(kubeconfig=str(kubeconfig)) as client, InformerFactory(client) as informers:
            await _install_crd(client)
            world = World(client)
            await world.start(informers)
            world.on_change(screen.change)
            try:
                story = Story(
                    world,
                    say=lambda what: screen.say("you", what),
                    start_replica=lambda identity: _start_replica(identity, kubeconfig, options, world, screen),
                )
                yield story
            finally:
                for replica in world.replicas.values():
                    if replica.running:
                        await replica.stop()


async def _start_replica(
    identity: str, kubeconfig: Path, options: DemoOptions, world: World, screen: Screen
) -> DemoReplica:
    def on_line(line: LogLine) -> None:
        world.saw_line(line)
        screen.line(line)

    arguments = [f"--kubeconfig={kubeconfig}", f"--lease={_LEASE}", f"--log-level={options.log_level}"]
    log_file = options.log_dir / f"{identity}.log" if options.log_dir is not None else None
    return await DemoReplica.start(identity, arguments, on_line=on_line, on_end=world.saw_end, log_file=log_file)


async def _install_crd(client: Client) -> None:
    await client.create(kinds.CUSTOM_RESOURCE_DEFINITION, read_yaml(CRD_FILE.read_text(), source=CRD_FILE.name))
    await client.list(FOO)


async def _keep_running(screen: Screen, kubeconfig: Path) -> None:
    screen.say("you", f"still running; try: kubectl --kubeconfig {kubeconfig} get foos -A")
    screen.say("you", "press Ctrl-C to stop")
    await asyncio.Event().wait()
