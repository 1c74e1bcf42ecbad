from __future__ import annotations

from tests.client.transports import each_transport

__all__ = ["each_transport"]
