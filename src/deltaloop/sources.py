"""Where the keys of a controller come from, beside its own kind: watched kinds, channels and timers."""

from deltaloop.runtime.sources import Channel as Channel
from deltaloop.runtime.sources import Periodic as Periodic
from deltaloop.runtime.sources import Source as Source
from deltaloop.runtime.sources import Watch as Watch
