"""The built-in kinds: constants such as ``dl.kinds.POD``, and a table to find them by name without asking a server."""

from deltaloop.api.kinds import *  # noqa: F403 - a table of a hundred constants, under the name that programs use
