"""Files that another tool keeps are served when they are whole, and read again when they change."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deltaloop.errors import InvalidArgumentError
from deltaloop.webhooks import MountedCertificates
from deltaloop.webhooks.certificates import signing
from deltaloop.webhooks.core.certificates.rotation import MakeAuthority, Serving
from tests.having import having
from tests.webhooks.certificates.test_own import DAY, peer_certificate

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def write(folder: Path, *, days: float = 90) -> None:
    now = NOW.timestamp()
    authority = signing.make_authority(MakeAuthority(now, now + 365 * DAY), name="a", serving_lifetime=90 * DAY)
    serving = Serving(authority.certificate, now, now + days * DAY, now)
    key, _, certificate = signing.issue(authority, serving, ["a.b.svc"]).reveal().partition("-----BEGIN CERTIFICATE")
    (folder / "tls.crt").write_text(f"-----BEGIN CERTIFICATE{certificate}")
    (folder / "tls.key").write_text(key)


async def test_a_new_certificate_is_served_without_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = MountedCertificates(tmp_path, wall_clock=lambda: NOW + timedelta(seconds=loop.time()))
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(found.run())
    await asyncio.sleep(1)
    assert found.not_ready() == f"tls.crt and tls.key in {tmp_path} are not usable (No such file or directory)"
    write(tmp_path)
    await asyncio.sleep(10)
    assert found.not_ready() == ""
    first = peer_certificate(found.context())
    write(tmp_path, days=0.1)
    key = (tmp_path / "tls.key").read_text()
    write(tmp_path, days=0.1)  # the key is that of another certificate, as while files are written one by one
    whole = (tmp_path / "tls.key").read_text()
    (tmp_path / "tls.key").write_text(key)
    await asyncio.sleep(10)
    assert peer_certificate(found.context()) == first
    (tmp_path / "tls.key").write_text(whole)
    await asyncio.sleep(10)
    assert peer_certificate(found.context()) != first
    await asyncio.sleep(DAY / 10)
    assert found.not_ready() == "its certificate is not valid now"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    warned = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert [vars(each)["reason"] for each in warned] == ["No such file or directory", "SSLError"]
    assert not [each for each in caplog.records for line in whole.splitlines()[1:-1] if line in f"{vars(each)}"]


def test_missing_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="folder")):
        MountedCertificates(tmp_path / "missing")
