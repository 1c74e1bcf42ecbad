"""Flags for logging."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from deltaloop.api.logs import configure_logging

LogFormatFlag: TypeAlias = Annotated[str, typer.Option("--log-format", metavar="text|json", help="Log format.")]
LogLevelFlag: TypeAlias = Annotated[
    str, typer.Option("--log-level", help="Lowest level that is logged: DEBUG, INFO, WARNING or ERROR.")
]


def set_up_logging(log_level: str, log_format: str = "text") -> None:
    if log_format not in ("text", "json"):
        raise typer.BadParameter(f"--log-format must be text or json, got {log_format!r}")
    try:
        configure_logging(output="json" if log_format == "json" else "text", level=log_level.upper())
    except ValueError:
        raise typer.BadParameter(f"--log-level must be DEBUG, INFO, WARNING or ERROR, got {log_level!r}") from None
