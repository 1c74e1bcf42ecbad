"""Events: short notes about objects for people, kept by the API server for about an hour.

This room owns the recorder: correlation (``core/``: count repeats, combine similar ones, limit the rest), delivery with
retries, and the bounded queue in between. Recording never blocks and never fails the work.

Not here: watching events (cache), the clients (client).
"""

from deltaloop.events.core.correlation import CorrelatorOptions
from deltaloop.events.recorder import EventClient, EventRecorder, EventRecorderOptions

__all__ = ["CorrelatorOptions", "EventClient", "EventRecorder", "EventRecorderOptions"]
