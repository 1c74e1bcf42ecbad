"""Bodies of requests: JSON, YAML or protobuf, decoded by their content type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.wire import protobuf
from deltaloop.schemas.json_in_parts import encode_sorted
from deltaloop.schemas.nesting import check_depth, decode_json

APPLY_PATCH: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
_JSON: Final = ("", "application/json")
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")


def media_type_of(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


@final
@dataclass(slots=True, kw_only=True)
class SentBody:
    """Body of a request."""

    raw: bytes
    content_type: str
    type_of: protobuf.TypeOf | None = None
    api_version: str = ""
    kind: str = ""
    repeated: tuple[str, ...] | None = None

    def may_swell(self) -> bool:
        """Return whether YAML aliases or copies in a JSON Patch can make the content larger than the body."""
        media_type, raw = media_type_of(self.content_type), self.raw
        if media_type == JSON_PATCH:
            return b"copy" in raw or b"\\" in raw  # an escape can hide a copy operation
        return "yaml" in media_type and b"&" in raw

    def checked_media_type(self) -> str:
        """Return the media type, or raise UnsupportedMediaTypeError if it is not supported for objects."""
        media_type = media_type_of(self.content_type)
        in_protobuf = media_type == protobuf.CONTENT_TYPE and self.type_of is not None
        if media_type not in _JSON and media_type not in _YAML and not in_protobuf:
            accepted = ("application/json", "application/yaml", protobuf.CONTENT_TYPE)
            raise status_errors.unsupported_media_type(accepted[: 2 if self.type_of is None else 3])
        return media_type

    def decode(self) -> dict[str, object]:
        """Return the object in the body, or raise UnsupportedMediaTypeError or BadRequestError without the data."""
        media_type, raw = self.checked_media_type(), self.raw
        try:
            if media_type == protobuf.CONTENT_TYPE and self.type_of is not None:
                fields = protobuf.decode_body(raw, self.type_of, api_version=self.api_version, kind=self.kind)
                check_depth(fields)
                return fields
            if media_type in _YAML:
                raw = self._yaml_to_json()
            value = decode_json(raw)
        except msgspec.MsgspecError as error:
            raise status_errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
        except (InvalidArgumentError, UnicodeDecodeError, TypeError) as error:
            raise status_errors.bad_request(f"error converting YAML to JSON: {error}") from None
        except RecursionError:
            raise status_errors.bad_request("the body of the request is nested too deeply") from None
        if not isinstance(value, dict):
            raise status_errors.bad_request("the body of the request must be an object")
        return cast("dict[str, object]", value)

    def _yaml_to_json(self) -> bytes:
        from deltaloop.api.yaml_reader import read_yaml_body

        repeated: list[str] = []
        document = read_yaml_body(self.raw, source="the body of the request", repeated=repeated)
        # The real server also sorts keys here, which determines the first reported error.
        first = encode_sorted(document)
        self.repeated = tuple(repeated)
        return b"{}" if first == b"null" else first
