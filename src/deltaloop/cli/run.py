"""``deltaloop run``: load a module and run its controllers and webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Annotated, Any

import typer

from deltaloop.cli.load_controllers import TargetArgument, load_declared, target_name
from deltaloop.cli.logging_flags import LogFormatFlag, LogLevelFlag, set_up_logging
from deltaloop.cli.option_flags import flag_name, values_of, with_flags_of
from deltaloop.cli.until_signal import run_until_signal
from deltaloop.runtime.program.options import HEADINGS, RunOptionError, RunOptions
from deltaloop.runtime.program.run import run as run_program


@with_flags_of(RunOptions, HEADINGS)
def run(
    target: TargetArgument,
    *,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload",
            help="Restart the program when its files change, and keep the embedded server. Requires --embedded.",
            rich_help_panel="Embedded server",
        ),
    ] = False,
    log_format: LogFormatFlag = "text",
    log_level: LogLevelFlag = "INFO",
    **flags: Any,
) -> None:
    """Run the controllers and webhooks of a module until SIGINT or SIGTERM.

    A second signal ends the program immediately.
    """
    set_up_logging(log_level, log_format)
    try:
        if reload:
            from deltaloop.cli.reloading import run_with_reload

            options = options_of(target, flags)
            if not options.embedded:
                raise typer.BadParameter("--reload requires --embedded. Add --embedded, or remove --reload.")
            run_until_signal(run_with_reload(target, options, logs=(log_level, log_format)), interrupted=0)
        else:
            asyncio.run(program(target, flags))
    except RunOptionError as error:
        raise typer.BadParameter(error.described(flag_name)) from None


def program(target: str, flags: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
    """Load a module, and return the coroutine that runs its controllers and webhooks."""
    options = options_of(target, flags)
    module, controllers, webhooks = load_declared(target)
    return run_program(*controllers, *webhooks, options=options, modules=[module])


def options_of(target: str, flags: Mapping[str, Any]) -> RunOptions:
    name: Any = flags.get("webhook_name") or target_name(target)
    return RunOptions(**{**values_of(flags), "webhook_name": name})
