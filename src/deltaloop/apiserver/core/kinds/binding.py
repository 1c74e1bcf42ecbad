"""Binding: what is posted to the collection binds the pod of its name."""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.apiserver.core.strategy import Strategy

STRATEGY: Final = Strategy(posts_to=(kinds.POD, "binding"))
