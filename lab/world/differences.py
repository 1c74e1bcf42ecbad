"""What is meant to differ between the two runs of ``make -C lab world``: ``docs/embedded-server.md`` gives the reasons.

A line that no difference of a whole run needs any more fails the run, so that it goes.
"""

from __future__ import annotations

from typing import Final

from lab.world.compare import KnownDifference

KNOWN: Final[tuple[KnownDifference, ...]] = ()
