"""Code of the program under test, which excludes the standard library, installed packages and deltaloop."""

from __future__ import annotations

import os
from pathlib import Path
from types import CodeType
from typing import Final

import deltaloop

_OURS: Final = str(Path(deltaloop.__file__).parent) + os.sep
_STANDARD_LIBRARY: Final = str(Path(os.__file__).parent) + os.sep
_NOT_UNDER_TEST: Final = (_OURS, _STANDARD_LIBRARY, "<frozen ")
_INSTALLED: Final = ("site-packages", "dist-packages")
TURN: Final = "_run_once"
"""Name of the event loop function that runs one iteration."""


def is_under_test(file: str) -> bool:
    return not file.startswith(_NOT_UNDER_TEST) and _INSTALLED[0] not in file and _INSTALLED[1] not in file


def is_turn_of_loop(code: CodeType) -> bool:
    """Return whether code is an iteration of an event loop. Its callers run the simulation."""
    return code.co_name == TURN and code.co_filename.startswith((_OURS, _STANDARD_LIBRARY))
