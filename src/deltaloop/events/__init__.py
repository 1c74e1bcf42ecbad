"""Events: short notes about objects for people, kept by the API server for about an hour.

This room owns the recorder: merging in ``core/`` (core/v1: count repeats, combine similar ones, limit the rest;
events.k8s.io/v1: series), delivery with retries, and the bounded queue in between. Recording never blocks and never
fails the work.

Not here: watching events (cache), the clients (client).
"""

from deltaloop.events.component_recorder import ComponentRecorder as ComponentRecorder
from deltaloop.events.core.correlation import CorrelatorOptions as CorrelatorOptions
from deltaloop.events.core.draft import EventApi as EventApi
from deltaloop.events.core.draft import EventDraft as EventDraft
from deltaloop.events.core.event_object import event_field_selector as event_field_selector
from deltaloop.events.core.series import SeriesOptions as SeriesOptions
from deltaloop.events.event_log import log_event as log_event
from deltaloop.events.options import EventClient as EventClient
from deltaloop.events.options import EventRecorderOptions as EventRecorderOptions
from deltaloop.events.recorder import EventRecorder as EventRecorder
