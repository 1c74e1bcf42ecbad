"""Runs the ``deltaloop`` command: errors become one line and an exit code. ``commands.py`` declares the commands."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import notes_of
from deltaloop.api.plain_text import indented

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line; errors on purpose become one line on standard error.

    Exit codes: 0 done, 1 something that should happen did not, 2 the input is wrong or cannot be used, 130 interrupted.
    """
    signal.signal(signal.SIGINT, _leave_at_once)
    try:
        run = _command_line()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except DeltaloopError as error:
        print(f"error: {indented('; '.join([str(error), *notes_of(error)]))}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _leave_at_once(_: int, __: FrameType | None) -> NoReturn:
    """Answer Ctrl-C while modules are imported: nothing has begun that would have to end."""
    os._exit(130)


def _command_line() -> typer.Typer:
    from deltaloop.api.errors import MissingExtraError

    try:
        from deltaloop.cli.commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("typer", "rich"):
            raise MissingExtraError("the command line", "cli") from None
        raise
    return app
