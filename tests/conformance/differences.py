"""What the embedded server does not do as the real one does: the cases that fail on it, and why.

``docs/reference/embedded-server.md`` lists the same for readers. A case here that begins to pass fails the suite, so
that its line goes.
"""

from __future__ import annotations

from typing import Final

# Case (module without ``test_``, and name) -> reason.
DIFFERENCES: Final[dict[str, str]] = {}
