"""Built-in kinds: constants such as ``dl.kinds.POD``, and a table to find them by name without a server."""

from deltaloop.api.kinds import *  # noqa: F403 - re-exports about a hundred constants
