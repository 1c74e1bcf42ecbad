"""The operator on deltaloop, on uvloop's event loop."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from lab.bench.controller.programs.deltaloop_operator import main

if __name__ == "__main__":
    uvloop: Any = import_module("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
