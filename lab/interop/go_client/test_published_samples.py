"""Every kind that k8s.io/api publishes a full sample of, in protobuf and JSON, is read as that JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltaloop.apiserver.builtin_tables import builtin_types
from deltaloop.apiserver.core.wire.protobuf import decode_body
from lab.interop.go_client.go_modules import ASKED, GO, run_go

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), ASKED, GO]


def test_published_samples_are_read_as_their_json(go_modules: None) -> None:
    where = run_go("list", "-m", "-f", "{{.Dir}}", "k8s.io/api").stdout.strip()
    table, compared = builtin_types().body, 0
    for sample in sorted((Path(where) / "testdata" / "HEAD").glob("*.pb")):
        wanted = json.loads(sample.with_suffix(".json").read_text())
        api_version, kind = wanted.get("apiVersion", ""), wanted.get("kind", "")
        if table(api_version, kind) is not None:
            assert decode_body(sample.read_bytes(), table, api_version="", kind="") == wanted, sample.name
            compared += 1
    assert compared > 50
