from __future__ import annotations

import pytest

from tests.interop.go_client.go_modules import run_go


@pytest.fixture(scope="session")
def go_modules() -> None:
    """Skip, saying why, where the modules cannot be had."""
    fetched = run_go("mod", "download")
    if fetched.returncode != 0:
        pytest.skip(f"Go's clients: their modules cannot be had: {fetched.stderr.strip()[-300:]}")
