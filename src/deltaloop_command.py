"""The console script: takes Ctrl-C from the first moment on, then imports the package and runs its command line.

Importing the package takes a while. Were this function inside it, a Ctrl-C in that time would end in a traceback.
"""

import os
import signal


def main() -> None:
    """Run ``deltaloop``; see ``deltaloop.cli``."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # nothing has begun yet that would have to be ended
    from deltaloop.cli.main import main as run

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
