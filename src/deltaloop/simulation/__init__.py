"""Runs a program through crashes, lost answers and conflicts, and tells where it ends otherwise than without them.

``simulate`` takes a scenario, which is written as a test is, and makes it go through every fault at every write, in
worlds that one seed decides. A failure is told as a story, with the line that shows it again. This room may import
everything but the commands.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
