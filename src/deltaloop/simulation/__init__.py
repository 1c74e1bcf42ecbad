"""Simulation of crashes, lost responses, conflicts and other faults at each write of a program, decided by one seed."""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
