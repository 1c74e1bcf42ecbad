"""The operator on deltaloop, which says what it has imported by the time that it is told to end.

It imports nothing that the operator does not, and so writes names one a line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Final

FILE: Final = "BENCH_MODULES"


def _say(*_: object) -> None:
    names = "\n".join(sys.modules)
    with open(os.environ[FILE], "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
        file.write(names)
    os._exit(0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _say)
    from lab.bench.controller.programs.deltaloop_operator import main

    asyncio.run(main())
