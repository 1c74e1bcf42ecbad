"""Entry point of the ``deltaloop`` command."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import notes_of
from deltaloop.api.plain_text import indented

if TYPE_CHECKING:
    import typer


def main(module: str = "deltaloop.cli.app") -> None:
    """Run the command line of a module, and print expected errors as one line on standard error.

    Exit codes: 0 success, 1 failure, 2 invalid input, 130 interrupted.
    """
    signal.signal(signal.SIGINT, _leave_at_once)
    try:
        run = _command_line(module)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except DeltaloopError as error:
        print_error(error)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def print_error(error: DeltaloopError) -> None:
    """Print an expected error with its notes."""
    print(f"error: {indented('; '.join([str(error), *notes_of(error)]))}", file=sys.stderr)


def _leave_at_once(_: int, __: FrameType | None) -> NoReturn:
    """Exit on Ctrl-C during imports, before anything runs."""
    os._exit(130)


def kubectl_plugin() -> None:
    """Run the command line of ``kubectl deltaloop``."""
    main("deltaloop.cli.kubectl_plugin")


def _command_line(module: str) -> typer.Typer:
    from deltaloop.api.errors import MissingExtraError

    try:
        app: typer.Typer = import_module(module).app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("typer", "rich"):
            raise MissingExtraError("the command line", "cli") from None
        raise
    return app
