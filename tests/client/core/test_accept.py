"""What lists and watches ask for, as their Accept header says: best first, the plain object last."""

from __future__ import annotations

import pytest

from deltaloop.client.core.accept import list_accept, watch_accept

PLAIN = "application/json"
DROP = "drop=metadata.managedFields"
LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
WATCH = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


@pytest.mark.parametrize(
    ("metadata_only", "drop", "wanted"),
    [
        (False, False, [PLAIN]),
        (False, True, [f"{PLAIN};{DROP}", PLAIN]),
        (True, False, ["{form}", PLAIN]),
        (True, True, ["{form};" + DROP, "{form}", f"{PLAIN};{DROP}", PLAIN]),
    ],
)
def test_accept_header_names_each_form_once(metadata_only: bool, drop: bool, wanted: list[str]) -> None:
    for accept, form in ((list_accept, LIST), (watch_accept, WATCH)):
        asked = accept(metadata_only=metadata_only, drop_managed_fields=drop)
        assert asked.split(",") == [each.format(form=form) for each in wanted]
