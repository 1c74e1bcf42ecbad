"""What can be wrong with where a server listens, and with where it keeps its data."""

from __future__ import annotations

from pathlib import Path

from deltaloop.api.errors import DeltaloopError


class DataDirectoryError(DeltaloopError):
    """The data directory cannot be used, or no longer; the message says why and what to do.

    Attributes:
        directory: The data directory.
    """

    def __init__(self, message: str, *, directory: Path) -> None:
        """Keep where."""
        super().__init__(message)
        self.directory = directory


class ServerStartError(DeltaloopError):
    """The server cannot listen; the message says where and what to do.

    Attributes:
        host: The address that could not be listened on.
        port: The port that could not be listened on.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        """Keep where."""
        super().__init__(message)
        self.host = host
        self.port = port
