"""The program on the page runs, and the numbers on it are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.events import CorrelatorOptions, EventRecorderOptions, SeriesOptions
from deltaloop.testing.servers.cluster import write_kubeconfig
from tests.events.test_embedded import POD, serving

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()


@pytest.mark.real_time
async def test_the_program_on_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"<!-- snippet: events_recorder -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    program: dict[str, Any] = {}
    exec(compile(found[1], "events.md", "exec"), program)
    async with serving() as (server, client):
        write_kubeconfig(tmp_path / "config", server.kubeconfig())
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
        pod = dl.Resource.from_dict(POD, dl.kinds.POD)
        await program["main"](pod, dl.Resource.from_dict({"metadata": {"name": "node-2"}}, dl.kinds.NODE))
        events = {event["reason"]: event for event in (await client.list(dl.kinds.EVENTS_V1_EVENT)).items}
    assert capsys.readouterr().out == "all sent: True events.k8s.io/v1 dropped: 0\n"
    assert (events["Moved"]["action"], events["Moved"]["related"]["name"]) == ("Move", "node-2")
    assert events["Slow"].annotations == {"example.com/run": "7"}


def test_the_numbers_on_the_page_are_the_defaults() -> None:
    options, correlation, series = EventRecorderOptions(), CorrelatorOptions(), SeriesOptions()
    assert (correlation.similar_limit, correlation.similar_interval) == (10, 600)
    assert "From the 10th different message within 10 minutes" in PAGE
    assert (correlation.spam_burst, 1 / correlation.spam_rate) == (25, 300)
    assert "25 events of one type about one object, and one more each 5 minutes" in PAGE
    assert correlation.cache_size == series.cache_size == 4096
    assert PAGE.count("4096") == 2
    assert (series.refresh_interval, series.finish_after) == (1800, 360)
    assert "each 30 minutes" in PAGE
    assert "6 minutes have passed" in PAGE
    assert (options.max_tries, options.retry_delay, options.queue_size, options.close_timeout) == (12, 10, 1000, 5)
    for text in ("12 tries in all (`max_tries`), 10 s apart", "1000 may wait", "`close_timeout` (5 s)"):
        assert text in PAGE
