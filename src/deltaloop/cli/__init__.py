"""Commands of ``deltaloop``, one module each. ``app.py`` lists them.

They require the extras ``cli`` and ``server``. A command exits with code 2 after invalid input and with code 1 after a
failure.
"""
