"""Events: short notes about objects for people, kept by the API server for about an hour.

This room owns the recorder: merging in ``core/`` (core/v1: count repeats, combine similar ones, limit the rest;
events.k8s.io/v1: series), delivery with retries, and the bounded queue in between. Recording never blocks and never
fails the work.

Not here: watching events (cache), the clients (client).

A name is imported when it is first used: a program pays for what it needs.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
