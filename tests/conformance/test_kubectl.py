"""The first part of the kubectl script on the embedded server, with the newest kubectl that has been recorded."""

from __future__ import annotations

import pytest

from tests.conformance.kubectl_script import (
    EXPECTED,
    SCRIPT,
    SHORT,
    differences,
    embedded,
    find_kubectls,
    minor_version,
    run_script,
)


@pytest.mark.nightly
@pytest.mark.slow
def test_basic_commands() -> None:
    versions = {minor_version(path): path for path in find_kubectls()}
    recorded = [version for version in versions if (EXPECTED / f"{version}.txt").exists()]
    if not recorded:
        pytest.skip("no kubectl that something is recorded for")
    newest = max(recorded, key=lambda version: int(version.partition(".")[2]))
    with embedded() as kubeconfig:
        printed = run_script(versions[newest], kubeconfig, "script", SCRIPT[:SHORT])
    wanted = (EXPECTED / f"{newest}.txt").read_text()
    assert differences(wanted[: _end_of_short(wanted)], printed) == []


def _end_of_short(text: str) -> int:
    place = -1
    for _ in range(SHORT + 1):
        place = text.index("$ kubectl ", place + 1)
    return place
