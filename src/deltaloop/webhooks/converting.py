"""Call conversion functions for the objects of a review and build the response."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Final, cast, final

import msgspec

from deltaloop._internal.tracebacks import defined_at
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_values import copied, is_mapping, items, mapping, text
from deltaloop.api.json_writing import plain_fields, write_json
from deltaloop.api.keys import join_key
from deltaloop.api.plain_text import one_line
from deltaloop.api.resource import DECODE_ERRORS, Resource, typed, without_data
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.set_fields import set_fields
from deltaloop.webhooks.answer import Answer, SeenMismatch, Steps, finished, refused_body, told
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.core.conversion_review import (
    Hub,
    HubError,
    NoConversionError,
    converted_response,
    read_conversion_review,
    unconverted_response,
)
from deltaloop.webhooks.core.zero_values import unset_choices, with_zero_values
from deltaloop.webhooks.declaring import ConversionFunction
from deltaloop.webhooks.errors import InvalidReviewResultError, InvalidWebhookError

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode
_PLAIN: Final = (None, Resource, dict)


@final
class KindConversion:
    """All conversions of one kind.

    Attributes:
        type: Kind in its hub version.
        hub: Version to and from which all other versions are converted.
        spokes: The other versions.
        path: Path of the webhook's URL.

    Raises:
        InvalidWebhookError: If the functions do not form a hub and spokes.
    """

    def __init__(self, functions: Iterable[ConversionFunction]) -> None:
        declared = list(functions)
        first = declared[0]
        try:
            self._hub = Hub((each.source.version, each.target.version, each) for each in declared)
        except HubError as error:
            raise InvalidWebhookError(first.source.group_resource, str(error)) from None
        for each in declared:
            self._check_kind(each)
        self.hub: str = self._hub.version
        self.spokes: tuple[str, ...] = self._hub.spokes
        self.path: str = first.path
        sides = (side for each in declared for side in (each.source, each.target))
        self.type: ResourceType[Any] = next(side for side in sides if side.version == self.hub)

    def _check_kind(self, function: ConversionFunction) -> None:
        """Reject conversions that omit the version of the class that they name."""
        kind = function.kind
        if kind is None or kind.model in _PLAIN or kind.version in (self._hub.version, *self._hub.spokes):
            return
        known = ", ".join((self._hub.version, *self._hub.spokes))
        problem = f"the conversions must include {kind.version}, the version of the class, got {known}."
        raise InvalidWebhookError(function.name, problem, option=kind.version)

    def convert(self, obj: Mapping[str, Any], version: str) -> dict[str, Any]:
        """Convert an object to a different version.

        Args:
            obj: Object in any version of the kind. It is not changed.
            version: Target version, for example ``v1``.

        Raises:
            NoConversionError: If a version is unknown or the object is of a different kind.
            MalformedObjectError: If the object does not fit the class of a function.
            InvalidReviewResultError: If a function does not return an object.
        """
        return finished(self.steps(obj, version))

    def steps(
        self, obj: Mapping[str, Any], version: str, mismatches: list[SeenMismatch] | None = None
    ) -> Steps[dict[str, Any]]:
        """Convert an object in steps, of which every second step runs a function.

        Args:
            obj: Object in any version of the kind.
            version: Target version.
            mismatches: List that receives absent required fields.

        Raises:
            NoConversionError: If a version is unknown or the object is of a different kind. Other errors are those of
                ``convert``.
        """
        group, _, source = text(obj.get("apiVersion")).rpartition("/")
        if (group, obj.get("kind")) != (self.type.group, self.type.kind):
            raise NoConversionError(f"{self.path} converts only {self.type.group_resource}")
        original = copied(dict(obj))
        result: dict[str, Any] = copied(dict(obj))
        for function in self._hub.way(source, version):
            given = _given(function, result, mismatches if mismatches is not None else [])
            yield
            returned = function.function(given)
            yield
            result = _taken(function, result, returned)
            result["apiVersion"], result["kind"] = function.target.api_version, self.type.kind
            result["metadata"] = _metadata(mapping(original.get("metadata")), mapping(result.get("metadata")))
        return result

    def __repr__(self) -> str:
        return f"<KindConversion of {self.type.group_resource}: {self.hub}, {', '.join(self.spokes)}>"


def answer_conversion(conversion: KindConversion, body: bytes | bytearray) -> Answer:
    """Convert the objects of a review without turns."""
    try:
        request = read_conversion_review(body)
    except InvalidReviewError as error:
        return refused_conversion(error)
    review = ReviewConversion(conversion, request.uid, request.desired)
    for obj in request.objects:
        answer = finished(review.object_steps(obj))
        if answer is not None:
            return answer
    return review.converted()


def refused_conversion(error: InvalidReviewError) -> Answer:
    return refused_body(error, lambda uid, status: unconverted_response(uid, status.message))


@final
class ReviewConversion:
    """Conversion of one review, object by object. ``size`` counts the bytes of the converted objects."""

    def __init__(self, conversion: KindConversion, uid: str, desired: str) -> None:
        self._conversion = conversion
        self._uid = uid
        self._group, _, self._version = desired.rpartition("/")
        self._results: list[msgspec.Raw] = []
        self.size: int = 0
        self._mismatches: list[SeenMismatch] = []

    def object_steps(self, obj: dict[str, Any] | bytes | bytearray) -> Steps[Answer | None]:
        """Convert the next object in steps. Return a response if it cannot be converted."""
        try:
            decoded = obj if isinstance(obj, dict) else _decode(obj)
        except DECODE_ERRORS as error:
            problem = f"an object of the review must be JSON: {without_data(error)}"
            return refused_conversion(InvalidReviewError(problem, uid=self._uid))
        try:
            if self._group != self._conversion.type.group:
                path, group = self._conversion.path, self._conversion.type.group
                raise NoConversionError(f"{path} converts only to versions of {group}")
            result = yield from self._conversion.steps(decoded, self._version, self._mismatches)
            written = _encode(result)
            self.size += len(written)
            self._results.append(msgspec.Raw(written))
        except Exception as error:  # noqa: BLE001 - the function can raise any exception
            return self._failed(decoded, error)
        return None

    def converted(self) -> Answer:
        seen = self._mismatches[0]._replace(objects=len(self._mismatches)) if self._mismatches else None
        return Answer(200, converted_response(self._uid, self._results), "converted", mismatch=seen)

    def _failed(self, obj: Mapping[str, Any], error: Exception) -> Answer:
        key, named = _key(obj), f"{self._conversion.type.group_resource} {one_line(_key(obj))}"
        if isinstance(error, NoConversionError | MalformedObjectError):
            path = error.path if isinstance(error, MalformedObjectError) else ""
            body = unconverted_response(self._uid, f"{named}: {error}")
            return Answer(200, body, "invalid", mismatch=SeenMismatch(key, path, str(error)))
        why = f"the conversion of {named} to {self._version} failed: {told(error)}"
        return Answer(200, unconverted_response(self._uid, why), "failed", error, key=key)


def _key(obj: Mapping[str, Any]) -> str:
    metadata = mapping(obj.get("metadata"))
    return join_key(text(metadata.get("namespace")), text(metadata.get("name")))


def _given(function: ConversionFunction, obj: dict[str, Any], seen: list[SeenMismatch]) -> Any:
    """Return the argument of a function, with zero values for absent required fields."""
    source = function.source
    if source.model in _PLAIN:
        return obj
    resource = Resource.from_dict(obj, source)
    try:
        return typed(source, resource)
    except MalformedObjectError as error:
        model: Any = source.model
        filled = with_zero_values(model, obj)
        wrong = next((each for each in filled.found if not each.absent), None)
        if wrong is not None:
            problem = f"it does not fit {model.__name__} at {wrong.field}: {wrong.problem}"
            raise MalformedObjectError(problem, path=wrong.field) from None
        if not filled.found:
            raise
        try:
            given = typed(source, Resource.from_dict(filled.fields, source))
        except MalformedObjectError:  # the zero value is not allowed either
            absent = filled.found[0]
            problem = f"it does not fit {model.__name__} at {absent.field}: {absent.problem}"
            raise MalformedObjectError(problem, path=absent.field) from error
        unset_choices(given, filled.choices)
        seen.append(SeenMismatch(_key(obj), filled.found[0].field, filled.found[0].problem))
        return given


def _taken(function: ConversionFunction, obj: dict[str, Any], returned: Any) -> dict[str, Any]:
    if function.target.model not in _PLAIN:
        model: Any = function.target.model
        if not isinstance(returned, model):
            raise _wrong(function, returned, f"a {model.__name__}")
        written: dict[str, Any] = _written(plain_fields(returned), set_fields(returned))
        return {**written, "metadata": obj.get("metadata")}
    if returned is None:
        returned = obj
    if not isinstance(returned, Mapping):
        raise _wrong(function, cast("object", returned), "a dict or None")
    return _decode(write_json(cast("object", returned), "the converted object"))


def _wrong(function: ConversionFunction, returned: object, wanted: str) -> InvalidReviewResultError:
    problem = f"{function.name} must return {wanted}, got {type(returned).__name__}"
    return InvalidReviewResultError(function.name, problem, where=defined_at(function.function))


def _written(plain: Any, said: Any) -> Any:
    """Return the stored form of a typed object: with its defaults, but without fields that are None by default."""
    if is_mapping(plain):
        known = mapping(said)
        return {
            name: _written(value, known.get(name))
            for name, value in plain.items()
            if value is not None or name in known
        }
    if isinstance(plain, list):
        pairs = zip_longest(items(cast("object", plain)), items(said))
        return [_written(*pair) for pair in pairs]
    return plain


def _metadata(original: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in original.items() if name not in ("labels", "annotations")}
    return kept | {name: result[name] for name in ("labels", "annotations") if result.get(name)}
