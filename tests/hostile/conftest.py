from __future__ import annotations

from tests.client.transports import each_transport  # noqa: F401 - a fixture
