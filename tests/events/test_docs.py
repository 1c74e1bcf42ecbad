"""The numbers on the page of the event recorder are the defaults."""

from __future__ import annotations

from pathlib import Path

from deltaloop.events import CorrelatorOptions, EventRecorderOptions, SeriesOptions

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "reference" / "events.md").read_text().split())


def test_documented_numbers_match_defaults() -> None:
    options, correlation, series = EventRecorderOptions(), CorrelatorOptions(), SeriesOptions()
    assert (correlation.similar_limit, correlation.similar_interval) == (10, 600)
    assert "From the tenth different message within 10 minutes" in PAGE
    assert (correlation.spam_burst, 1 / correlation.spam_rate) == (25, 300)
    assert "25 Events of one type about one object, and one more every 5 minutes" in PAGE
    assert correlation.cache_size == series.cache_size == 4096
    assert "remembers 4096 Events" in PAGE
    assert (series.refresh_interval, series.finish_after) == (1800, 360)
    assert "every 30 minutes" in PAGE
    assert "6 minutes have passed" in PAGE
    assert (options.max_tries, options.retry_delay, options.queue_size, options.close_timeout) == (12, 10, 1000, 5)
    for row in ("`queue_size` | 1000", "`max_tries` | 12", "`retry_delay` | 10.0", "`close_timeout` | 5.0"):
        assert row in PAGE
