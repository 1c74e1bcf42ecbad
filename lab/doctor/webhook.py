"""A program that consists of one webhook."""

from __future__ import annotations

import deltaloop as dl


@dl.validate("v1/Service")
def check(service: dl.Resource) -> None:
    """Accept all Services. The API server never calls this webhook, because its caBundle is wrong."""
