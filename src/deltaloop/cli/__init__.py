"""The ``deltaloop`` command, with one module for each command; ``app.py`` lists them.

It needs the extras ``cli`` and ``server``. Invalid input ends a command with one line and exit code 2, a failure with
1.
"""
