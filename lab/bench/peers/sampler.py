"""A sampling profiler of one Python process: what its main thread was doing, so many times for each second of CPU."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

INTERVAL: Final = 0.001


def _name(frame: FrameType) -> str:
    code = frame.f_code
    return f"{Path(code.co_filename).stem}:{code.co_qualname}"


@contextmanager
def sampled(path: Path) -> Generator[None]:
    """Sample while the block runs; write folded stacks (flame graphs' format) and, beside them, a table."""
    stacks = Counter[tuple[str, ...]]()

    def take(_: int, frame: FrameType | None) -> None:
        stack = list[str]()
        while frame is not None:
            stack.append(_name(frame))
            frame = frame.f_back
        stacks[tuple(reversed(stack))] += 1

    before = signal.signal(signal.SIGPROF, take)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        path.parent.mkdir(parents=True, exist_ok=True)
        folded = (f"{';'.join(stack)} {count}" for stack, count in stacks.most_common())
        path.with_suffix(".folded").write_text("\n".join(folded) + "\n")
        path.with_suffix(".txt").write_text(table(stacks))


def table(stacks: Counter[tuple[str, ...]]) -> str:
    """Return the functions by their own share of the samples, with the share of all that they call."""
    total = stacks.total() or 1
    own, whole = Counter[str](), Counter[str]()
    for stack, count in stacks.items():
        own[stack[-1]] += count
        for name in set(stack):
            whole[name] += count
    lines = [f"{total} samples", f"{'own':>7} {'all':>7}"]
    lines += [f"{count / total:7.1%} {whole[name] / total:7.1%}  {name}" for name, count in own.most_common(60)]
    return "\n".join(lines) + "\n"
