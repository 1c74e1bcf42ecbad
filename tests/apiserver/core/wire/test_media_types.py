from __future__ import annotations

import pytest

from deltaloop.apiserver.core.wire.media_types import parse_accept


def _types(header: str) -> list[str]:
    return [clause.media_type for clause in parse_accept(header)]


@pytest.mark.parametrize(
    ("header", "types"),
    [
        ("", ["*/*"]),
        ("  ", ["*/*"]),
        ("application/json", ["application/json"]),
        ("text/html, Application/JSON", ["text/html", "application/json"]),
        ("a/b;q=0.5, c/d", ["c/d", "a/b"]),
        ("a/b;q=0, c/d", ["c/d"]),
        ("a/b;q=nonsense, c/d", ["a/b", "c/d"]),
        (",,a/b,", ["a/b"]),
    ],
)
def test_clauses_are_sorted_by_preference(header: str, types: list[str]) -> None:
    assert _types(header) == types


def test_parameters_are_parsed_without_quotes_and_quality() -> None:
    (clause,) = parse_accept('application/json; As=Table ;v="v1";g=meta.k8s.io;q=0.9')
    assert clause.parameters == {"as": "Table", "v": "v1", "g": "meta.k8s.io"}


@pytest.mark.parametrize("accept", ["application/json", "application/*", "*/*", ""])
def test_wildcards_match_json(accept: str) -> None:
    assert parse_accept(accept)[0].accepts_json


def test_protobuf_is_not_json() -> None:
    assert not parse_accept("application/vnd.kubernetes.protobuf")[0].accepts_json
