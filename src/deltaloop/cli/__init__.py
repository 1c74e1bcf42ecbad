"""The ``deltaloop`` command: run controllers, explain and grant what they do, the embedded API server, the demo.

Needs the extras ``cli`` and ``server``. Errors that are somebody's input end with one line and exit code 2, a demo step
that does not happen with exit code 1.
"""
