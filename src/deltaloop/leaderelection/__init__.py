"""Leader election: of many candidates, at most one works, and another takes over when it is gone.

This room owns the record that candidates share, the decisions of one candidate (``core/``), the locks that store the
record, and the elector with its terms. A leader that cannot renew stops before another candidate may lead: its work is
cancelled, and its guarded client refuses writes, by a clock that also runs while the machine sleeps.

Not here: what a leader does (runtime), the clients (client), the recorder of events (events; the two meet by protocol).

A name is imported when it is first used: a program pays for what it needs.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
