"""Names of container images.

Source: github.com/distribution/reference.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"{_DOMAIN}/(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?", re.ASCII
)
_DIGEST: Final = re.compile("sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")
_LONGEST_PATH: Final = 255
_HUB: Final = "docker.io"
_OLD_HUB: Final = "index.docker.io"


def image_tag(image: str) -> str:
    """Return the tag of a reference, ``latest`` if it has neither a tag nor a digest, "" if it is not valid."""
    domain, slash, name = image.partition("/")
    is_domain = domain in ("localhost", _OLD_HUB) or domain != domain.lower() or any(sign in domain for sign in ".:")
    if not (slash and is_domain):
        domain, name = _HUB, image
    if domain in (_HUB, _OLD_HUB):
        domain, name = _HUB, name if "/" in name else f"library/{name}"
    found = _REFERENCE.fullmatch(f"{domain}/{name}")
    if found is None or _IDENTIFIER.fullmatch(image) or len(found["path"]) > _LONGEST_PATH:
        return ""
    if found["digest"] and not _DIGEST.fullmatch(found["digest"]):
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")
