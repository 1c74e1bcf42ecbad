"""Known differences between the two runs of ``make -C lab world``.

A whole run fails if a line is not needed any more.
"""

from __future__ import annotations

from typing import Final

from lab.world.compare import KnownDifference

KNOWN: Final[tuple[KnownDifference, ...]] = ()
