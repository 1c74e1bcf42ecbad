"""Rewrite the Unicode tables that patterns may name, as Go has them: ``python -m tools.unicode_tables.generate``.

``main.go`` prints them; they become a module of compressed text, so that matching a pattern reads no file.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
TARGET: Final = HERE.parents[1] / "src" / "deltaloop" / "schemas" / "patterns" / "unicode_tables.py"


def module(text: str) -> str:
    """Return the module of a text of tables."""
    packed = base64.b85encode(zlib.compress(text.encode(), 9)).decode()
    return f'''"""The sets of characters that Unicode names, as ``tools/unicode_tables`` writes them."""

from __future__ import annotations

from typing import Final

PACKED: Final = "{packed}"  # noqa: E501 - base 85 of zlib
'''


def main() -> None:
    """Run Go, and write the module."""
    done = subprocess.run(
        [shutil.which("go") or "go", "run", "."], cwd=HERE, capture_output=True, text=True, check=True
    )
    TARGET.write_text(module(done.stdout))


if __name__ == "__main__":
    main()
