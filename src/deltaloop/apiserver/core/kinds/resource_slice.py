"""ResourceSlice: a warning about the name of its driver.

Source: Kubernetes pkg/registry/resource/resourceslice/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.devices import DEVICE_CHECKS
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import shown
from deltaloop.schemas.json_values import at, text


def _warnings(resource_slice: Mapping[str, object]) -> Iterator[str]:
    driver = text(at(resource_slice, "spec", "driver"))
    if driver != driver.lower():
        yield f"spec.driver: driver names should be lowercase; {shown(driver)} contains uppercase characters"


STRATEGY: Final = Strategy(checks=DEVICE_CHECKS, warn=_warnings)
