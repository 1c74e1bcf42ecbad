from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.client.authority import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority(trustme.CA())


@pytest.fixture
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go during the test; none may be left."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    yield directory
    assert list(directory.rglob("*")) == []
