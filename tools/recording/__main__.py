"""Records the demo as a picture for the documentation: ``make -C lab recording``.

The demo is run once, as a user would run it; each line is taken when it comes. A run that fails leaves the picture as
it was.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tools.recording.draw import Line, draw

PICTURE: Final = Path(__file__).parents[2] / "docs" / "demo.svg"
LONGEST: Final = 60.0
"""Seconds that the demo may take; it takes about five."""


def main() -> None:
    """Run the demo and write the picture."""
    command = [str(Path(sys.executable).with_name("deltaloop")), "demo"]
    start = time.monotonic()
    lines: list[Line] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            lines.append(Line(time.monotonic() - start, text.rstrip("\n")))
            if time.monotonic() - start > LONGEST:
                process.kill()
    if process.returncode:
        sys.exit(f"the demo failed with exit code {process.returncode}:\n" + "\n".join(line.text for line in lines))
    PICTURE.write_text(draw([Line(0.0, "$ make demo"), *lines], title="make demo"), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(Path.cwd())}: {len(lines)} lines in {lines[-1].at:.1f} s")


if __name__ == "__main__":
    main()
