"""What Go's ``time.Parse`` said of these texts once."""

from __future__ import annotations

import pytest

from deltaloop.schemas.go_numbers import DATE_LAYOUT, LOCAL_LAYOUT, why_no_time


@pytest.mark.parametrize(
    ("layout", "text", "why"),
    [
        (DATE_LAYOUT, "x", 'parsing time "x" as "2006-01-02": cannot parse "x" as "2006"'),
        (DATE_LAYOUT, "", 'parsing time "" as "2006-01-02": cannot parse "" as "2006"'),
        (DATE_LAYOUT, "2020-01-01", ""),
        (DATE_LAYOUT, "2020-02-29", ""),
        (DATE_LAYOUT, "2021-02-29", 'parsing time "2021-02-29": day out of range'),
        (DATE_LAYOUT, "0000-02-29", ""),
        (DATE_LAYOUT, "2020-1-01", 'parsing time "2020-1-01" as "2006-01-02": cannot parse "1-01" as "01"'),
        (DATE_LAYOUT, "2020-13-01", 'parsing time "2020-13-01": month out of range'),
        (DATE_LAYOUT, "2020-00-01", 'parsing time "2020-00-01": month out of range'),
        (DATE_LAYOUT, "2020-01-00", 'parsing time "2020-01-00": day out of range'),
        (DATE_LAYOUT, "2020/01/01", 'parsing time "2020/01/01" as "2006-01-02": cannot parse "/01/01" as "-"'),
        (DATE_LAYOUT, "2020-02-30T", 'parsing time "2020-02-30T": extra text: "T"'),
        (DATE_LAYOUT, "2+20-01-01", 'parsing time "2+20-01-01" as "2006-01-02": cannot parse "2+20-01-01" as "2006"'),
        (LOCAL_LAYOUT, "2020-01-01T00:00:00", ""),
        (LOCAL_LAYOUT, "2020-01-01T1:02:03,5", ""),
        (LOCAL_LAYOUT, "2020-01-01T24:00:00", 'parsing time "2020-01-01T24:00:00": hour out of range'),
        (LOCAL_LAYOUT, "2020-01-01T00:60:00", 'parsing time "2020-01-01T00:60:00": minute out of range'),
        (LOCAL_LAYOUT, "2020-01-01T00:00:60", 'parsing time "2020-01-01T00:00:60": second out of range'),
        (
            LOCAL_LAYOUT,
            "2020-01-01T00:00:0",
            'parsing time "2020-01-01T00:00:0" as "2006-01-02T15:04:05": cannot parse "0" as "05"',
        ),
        (LOCAL_LAYOUT, "2020-01-01T00:00:00.", 'parsing time "2020-01-01T00:00:00.": extra text: "."'),
        (LOCAL_LAYOUT, "2020-01-01T00:00:00Z", 'parsing time "2020-01-01T00:00:00Z": extra text: "Z"'),
        (DATE_LAYOUT, "2020-01-01 00:00:00", 'parsing time "2020-01-01 00:00:00": extra text: " 00:00:00"'),
        (
            LOCAL_LAYOUT,
            '2020-01-01T00:00:00é"\\\t',
            'parsing time "2020-01-01T00:00:00\\xc3\\xa9\\"\\\\\\x09": extra text: "\\xc3\\xa9\\"\\\\\\x09"',
        ),
        (LOCAL_LAYOUT, "2021-02-29T00:00:00", 'parsing time "2021-02-29T00:00:00": day out of range'),
    ],
)
def test_time_errors_match_go(layout: str, text: str, why: str) -> None:
    # Seeded: with the day looked at before the rest, "2020-02-30T" is told to be out of range.
    assert why_no_time(layout, text) == why
