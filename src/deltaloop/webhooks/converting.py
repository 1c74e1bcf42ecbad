"""Has functions convert the objects of a review. Cores: ``core/conversion_review.py``, ``core/hub.py``.

Name, namespace and all other metadata stay as they were; a conversion from dict to dict may change labels and
annotations. One object that cannot be converted fails the review, as the API server has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Final, cast, final

import msgspec

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.json_writing import plain_fields, write_json
from deltaloop.api.resource import Resource, typed
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.set_fields import set_fields
from deltaloop.schemas.json_values import copied, is_mapping, items, mapping, text
from deltaloop.tracebacks import defined_at
from deltaloop.webhooks.answer import Answer, refused_body, told
from deltaloop.webhooks.core.admission_review import InvalidReviewError
from deltaloop.webhooks.core.conversion_review import (
    converted_response,
    read_conversion_review,
    unconverted_response,
)
from deltaloop.webhooks.core.hub import Hub, HubError, NoConversionError
from deltaloop.webhooks.declaring import ConversionFunction
from deltaloop.webhooks.errors import InvalidReviewResultError, InvalidWebhookError

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_PLAIN: Final = (None, Resource, dict)


@final
class KindConversion:
    """All conversions of one kind.

    Attributes:
        type: The kind, in the version that is its hub.
        hub: The version to and from which all others are converted.
        spokes: The other versions.
        path: Path of its URL.
    """

    def __init__(self, functions: Iterable[ConversionFunction]) -> None:
        """Take the functions of one kind.

        Raises:
            InvalidWebhookError: If they are no hub and spokes.
        """
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
        """Refuse conversions that leave out the version of the class that they name."""
        kind = function.kind
        if kind is None or kind.model in _PLAIN or kind.version in (self._hub.version, *self._hub.spokes):
            return
        problem = f"nothing is converted from or to {kind.version}, the version of its class"
        raise InvalidWebhookError(
            function.name, f"{problem}; there are {', '.join((self._hub.version, *self._hub.spokes))}"
        )

    def convert(self, obj: Mapping[str, Any], version: str) -> dict[str, Any]:
        """Return an object in another version; the one that is given is not changed.

        Args:
            obj: The object, in any version of the kind.
            version: Such as ``v1``.

        Raises:
            NoConversionError: If one of the versions is not converted, or the object is of another kind.
            MalformedObjectError: If the object does not fit the class of a function.
            InvalidReviewResultError: If a function returned no object.
        """
        group, _, source = text(obj.get("apiVersion")).rpartition("/")
        if (group, obj.get("kind")) != (self.type.group, self.type.kind):
            raise NoConversionError(f"{self.path} converts {self.type.group_resource} only")
        original = copied(dict(obj))
        result: dict[str, Any] = copied(dict(obj))
        for function in self._hub.way(source, version):
            result = _converted(function, result)
            result["apiVersion"], result["kind"] = function.target.api_version, self.type.kind
            result["metadata"] = _metadata(mapping(original.get("metadata")), mapping(result.get("metadata")))
        return result

    def __repr__(self) -> str:
        return f"<KindConversion of {self.type.group_resource}: {self.hub}, {', '.join(self.spokes)}>"


def answer_conversion(conversion: KindConversion, body: bytes) -> Answer:
    """Answer a review.

    Args:
        conversion: The kind whose objects it is about.
        body: The review, as it came.
    """
    try:
        request = read_conversion_review(body)
    except InvalidReviewError as error:
        return refused_body(error, lambda uid, status: unconverted_response(uid, status.message))
    group, _, version = request.desired.rpartition("/")
    try:
        if group != conversion.type.group:
            raise NoConversionError(f"{conversion.path} converts to versions of {conversion.type.group}")
        results = [conversion.convert(obj, version) for obj in request.objects]
    except (NoConversionError, MalformedObjectError) as error:
        return Answer(200, unconverted_response(request.uid, str(error)), "invalid")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the function's
        why = f"the conversion of {conversion.type.group_resource} to {version} failed: {told(error)}"
        return Answer(200, unconverted_response(request.uid, why), "failed", error)
    return Answer(200, converted_response(request.uid, results), "converted")


def _converted(function: ConversionFunction, obj: dict[str, Any]) -> dict[str, Any]:
    given: Any = obj
    if function.source.model not in _PLAIN:
        given = typed(function.source, Resource.from_dict(obj, function.source))
    returned = function.function(given)
    if function.target.model not in _PLAIN:
        model: Any = function.target.model
        if not isinstance(returned, model):
            raise _wrong(function, returned, f"a {model.__name__}")
        written: dict[str, Any] = _written(plain_fields(returned), set_fields(returned))
        return {**written, "metadata": obj.get("metadata")}
    if returned is None:
        returned = obj
    if not isinstance(returned, Mapping):
        raise _wrong(function, cast("object", returned), "a dict or nothing")
    return _decode(write_json(cast("object", returned), "the converted object"))


def _wrong(function: ConversionFunction, returned: object, wanted: str) -> InvalidReviewResultError:
    problem = f"{function.name} gave a {type(returned).__name__}, and not {wanted}"
    return InvalidReviewResultError(function.name, problem, where=defined_at(function.function))


def _written(plain: Any, said: Any) -> Any:
    """Return a typed object as it is stored: with its defaults, but without fields that are None by default."""
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
