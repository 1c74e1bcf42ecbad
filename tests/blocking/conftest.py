from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from deltaloop.blocking import Client, connect
from tests.blocking.serving import serving


@pytest.fixture
def kubeconfig() -> Generator[dict[str, Any]]:
    with serving() as kubeconfig:
        yield kubeconfig


@pytest.fixture
def client(kubeconfig: dict[str, Any]) -> Generator[Client]:
    with connect(kubeconfig=kubeconfig) as client:
        yield client
