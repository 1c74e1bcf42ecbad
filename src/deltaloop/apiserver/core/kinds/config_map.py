"""ConfigMap: its keys, and that an immutable one stays as it is (``data_keys``)."""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core.kinds.data_keys import immutable_errors, key_errors
from deltaloop.apiserver.core.strategy import Strategy

_DATA: Final = ("data", "binaryData")

STRATEGY: Final = Strategy(
    validate=lambda config_map: key_errors(config_map, _DATA),
    validate_update=lambda before, after: immutable_errors(before, after, _DATA),
    cells={"Data": lambda config_map: sum(len(mapping(config_map.get(name))) for name in _DATA)},
)
