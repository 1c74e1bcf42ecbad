"""Runs the ``deltaloop`` command: errors become one line and an exit code. ``commands.py`` declares the commands."""

from __future__ import annotations

import sys

from deltaloop.api.errors import DeltaloopError, MissingExtraError


def main() -> None:
    """Run the command line; errors on purpose become one line on standard error.

    Exit codes: 0 done, 1 something that should happen did not, 2 the input is wrong or cannot be used, 130 interrupted.
    """
    try:
        try:
            from deltaloop.cli.commands import app
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("typer", "rich"):
                raise MissingExtraError("the command line", "cli") from None
            raise
        app()
    except DeltaloopError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
