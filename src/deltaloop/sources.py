"""Sources of keys in addition to the controller's own kind: watched kinds, channels and timers."""

from deltaloop.runtime.sources import Channel as Channel
from deltaloop.runtime.sources import Periodic as Periodic
from deltaloop.runtime.sources import Source as Source
from deltaloop.runtime.sources import Watch as Watch
