"""Errors of the data directory and of the start."""

from __future__ import annotations

from pathlib import Path

from deltaloop.api.errors import DeltaloopError


class DataDirectoryError(DeltaloopError):
    """Data directory that cannot be used.

    The message contains the reason and a remedy.

    Attributes:
        directory: Data directory.
    """

    def __init__(self, message: str, *, directory: Path) -> None:
        super().__init__(message)
        self.directory = directory


class ServerStartError(DeltaloopError):
    """Address that the server cannot listen on.

    The message contains the reason and a remedy.

    Attributes:
        host: Requested address.
        port: Requested port.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        super().__init__(message)
        self.host = host
        self.port = port
