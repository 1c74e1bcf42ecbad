"""What a webhook or a policy has made of an object: it is read anew as its kind, with its defaults.

Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, plugin/policy/mutating/dispatcher.go.
"""

from __future__ import annotations

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.admission.admission_request import converted
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.codec import AsSent
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.schemas.growth import check_growth
from deltaloop.schemas.nesting import MAX_STORED_DEPTH, TooDeepError, check_depth


def has_own_kind(attributes: AdmissionAttributes) -> bool:
    """Tell whether what is written is of the resource's kind, and not of its subresource's, such as a ``Scale``."""
    return not attributes.subresource or attributes.kind[2] == attributes.served.type.kind


def read_anew(
    attributes: AdmissionAttributes, served: ServedResource, result: dict[str, object], as_sent: AsSent = "patched"
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return an object in the version that was requested, and a sentence for each field that its type does not have.

    Args:
        attributes: The request.
        served: The version of the resource that the object is in.
        result: The object, which is changed.
        as_sent: How it came about.

    Raises:
        ApiError: If it cannot be read.
        GrowthError: If it is larger than ``growth`` allows.
    """
    if not has_own_kind(attributes):
        return result, ()
    try:
        check_depth(result, most=MAX_STORED_DEPTH)
    except TooDeepError as error:
        raise failures.internal(str(error)) from None
    check_growth(len(msgspec.json.encode(result)))
    unknown = served.codec.drop_unknown(result, b"", as_sent, told=True)
    served.codec.read(result, as_sent)
    served.strategy.default(result)
    return mapping(converted(result, served, attributes.served, attributes.stamp.outside)), tuple(unknown)
