"""Commands as click has them, to read their options."""

from __future__ import annotations

from typing import Any

import typer.main

from deltaloop.cli.app import app


def command_of(*names: str) -> Any:
    """Return a command by its names, such as ``generate`` and ``crd``."""
    found: Any = typer.main.get_command(app)
    for name in names:
        found = found.get_command(None, name)
    return found
