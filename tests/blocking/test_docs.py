"""The program with threads on the page runs, and leaves no threads."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.blocking import Client
from deltaloop.testing import eventually_blocking
from deltaloop.testing.servers.cluster import write_kubeconfig
from tests.blocking.serving import config_map, our_threads

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "threads.md"


def test_controller_of_page_runs(
    client: Client,
    kubeconfig: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = re.search(r'^```python title="workers.py"\n(.*?)^```$', PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    program: dict[str, Any] = {}
    exec(compile(found[1], "workers.py", "exec"), program)
    write_kubeconfig(tmp_path / "config", kubeconfig)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    stop, printed = threading.Event(), list[str]()

    def has_printed(line: str) -> bool:
        printed.extend(capsys.readouterr().out.splitlines())
        return line in printed

    running = threading.Thread(target=program["main"], args=(stop,))
    running.start()
    try:
        client.create(dl.kinds.CONFIG_MAP, config_map("a", b="1", a="2"))
        eventually_blocking(lambda: has_printed("default/a ok"))
        client.delete(dl.kinds.CONFIG_MAP, "a", namespace="default")
        eventually_blocking(lambda: has_printed("default/a deleted"))
    finally:
        stop.set()
        running.join(5)
    assert not running.is_alive()
    assert our_threads() == {"deltaloop"}
