"""Code of the program under test: not the standard library, installed packages, or deltaloop."""

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
"""Name of the function that is an event loop's turn."""


def is_under_test(file: str) -> bool:
    """Tell whether code of a file is the program's own.

    Args:
        file: Its path, as modules and code objects name it.
    """
    return not file.startswith(_NOT_UNDER_TEST) and _INSTALLED[0] not in file and _INSTALLED[1] not in file


def is_turn_of_loop(code: CodeType) -> bool:
    """Tell whether code is an event loop's turn: what has called it is whoever runs the simulation."""
    return code.co_name == TURN and code.co_filename.startswith((_OURS, _STANDARD_LIBRARY))
