"""The file that ``RunOptions.record_access`` writes and ``generate rbac --from`` reads."""

from __future__ import annotations

import json
from pathlib import Path

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.runtime.core.recorded_access import RecordedAccess
from deltaloop.runtime.program.private_file import write_whole


def save_access(path: Path, recorded: RecordedAccess) -> None:
    """Write recorded requests to a file that only its owner can read, or raise InvalidArgumentError."""
    try:
        write_whole(path, json.dumps(recorded.to_dict(), indent=1) + "\n")
    except OSError as error:
        raise InvalidArgumentError(f"must be writable: {error.strerror}.", argument=str(path)) from None


def read_access(path: Path) -> RecordedAccess:
    """Read recorded requests, or raise InvalidArgumentError."""
    try:
        fields = json.loads(path.read_text())
    except OSError as error:
        raise InvalidArgumentError(f"must be readable: {error.strerror}.", argument=str(path)) from None
    except ValueError:
        fields = None
    return RecordedAccess.from_dict(fields, source=str(path))
