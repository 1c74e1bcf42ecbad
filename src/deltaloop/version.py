"""The version, as pyproject.toml has it, too: to read it from the installed metadata takes 10 ms."""

from typing import Final

VERSION: Final = "0.1.0"
