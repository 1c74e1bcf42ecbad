"""Pages of several processes."""

from __future__ import annotations

import json

from deltaloop.runtime.core.merged_pages import merged_documents, merged_metrics

FIRST = b"""# HELP up Whether it runs
# TYPE up gauge
up 1.0
# TYPE seconds histogram
seconds_bucket{le="+Inf",name="a b"} 2.0
seconds_count{} 2.0
"""


def test_samples_have_the_process_and_each_family_is_in_one_place() -> None:
    page = merged_metrics({"0": FIRST, "1": b"# TYPE up gauge\nup 0.0\n"}).decode().splitlines()
    assert page == [
        "# HELP up Whether it runs",
        "# TYPE up gauge",
        'up{process="0"} 1.0',
        'up{process="1"} 0.0',
        "# TYPE seconds histogram",
        'seconds_bucket{process="0",le="+Inf",name="a b"} 2.0',
        'seconds_count{process="0"} 2.0',
    ]


def test_documents_are_joined_and_one_that_is_found_is_enough() -> None:
    found = (200, json.dumps({"reconciles": [1], "standby": None}).encode())
    missing = (404, json.dumps({"reconciles": [], "other": 2}).encode())
    status, body = merged_documents([missing, (503, b"not there"), found])
    assert (status, json.loads(body)) == (200, {"reconciles": [1], "other": 2, "standby": None})
    assert merged_documents([missing])[0] == 404
    assert merged_documents([(503, b"not there")]) == (503, b"no process answers\n")
    assert merged_documents([(400, b"bad request")]) == (400, b"bad request")
