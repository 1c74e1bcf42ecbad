"""Tags of image references."""

from __future__ import annotations

import pytest

from deltaloop.apiserver.core.kinds.pod import image_tag

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("web", "latest"),
        ("web:latest", "latest"),
        ("web:1", "1"),
        ("team/web", "latest"),
        ("localhost/web", "latest"),
        ("host:5000/team/web", "latest"),
        ("host:5000/web:2", "2"),
        ("[::1]:5000/web", "latest"),
        ("Host/web", "latest"),
        ("123/web", "latest"),
        ("index.docker.io/web", "latest"),
        ("a__b/c-d.e_f", "latest"),
        (f"web@{DIGEST}", ""),
        (f"web:latest@{DIGEST}", "latest"),
        (f"web:latest@sha1:{'a' * 40}", ""),
        (f"web:latest@{DIGEST.upper()}", ""),
        ("", ""),
        ("ko://example.com/cmd", ""),
        ("Web", ""),
        ("team/Web", ""),
        ("https://example.com/web", ""),
        ("web ", ""),
        ("$(IMAGE)", ""),
        ("web:", ""),
        ("web:la test", ""),
        ("web\n", ""),
        ("::1/web", ""),
        ("a" * 64, ""),
        ("a" * 255, ""),
        ("a" * 247, "latest"),
        ("a___b", ""),
        ("-a", ""),
        ("wéb", ""),
    ],
)
def test_tags(image: str, tag: str) -> None:
    assert image_tag(image) == tag


def test_long_references_take_linear_time() -> None:
    for image in ("a-" * 10_000, "a." * 10_000 + "/", "a/" * 10_000, "[" + ":" * 20_000, "A" * 20_000 + "/!"):
        assert image_tag(image) == ""
