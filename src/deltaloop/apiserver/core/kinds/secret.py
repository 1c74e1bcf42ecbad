"""Secret: ``stringData`` is written into ``data``, the type is ``Opaque`` unless it is said, and its keys.

Source: Kubernetes pkg/apis/core/v1/conversion.go, defaults.go; pkg/apis/core/validation.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from deltaloop.apiserver.core.kinds.data_keys import immutable_errors, key_errors
from deltaloop.apiserver.core.kinds.validation.others import secret_errors, secret_update_errors
from deltaloop.apiserver.core.strategy import Fields, Strategy
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.json_values import mapping

_DATA: Final = ("data",)


def _default(secret: Fields) -> None:
    texts = secret.pop("stringData", None)
    if texts:
        written = {key: base64.b64encode(str(value).encode()).decode() for key, value in mapping(texts).items()}
        secret["data"] = {**mapping(secret.get("data")), **written}
    if not secret.get("type"):
        secret["type"] = "Opaque"


def _errors(secret: Fields) -> Iterator[FieldError]:
    yield from key_errors(secret, _DATA)
    yield from secret_errors(secret)


def _update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    yield from immutable_errors(before, after, _DATA)
    yield from secret_update_errors(before, after)


STRATEGY: Final = Strategy(default=_default, validate=_errors, validate_update=_update_errors)
