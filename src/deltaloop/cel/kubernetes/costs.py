"""Kubernetes' costs of calls by function name, where they differ from cel-go's.

Source: k8s.io/apiserver pkg/cel/library/cost.go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from deltaloop.cel.costs import (
    LIST_COST,
    OBJECT_COST,
    ONE,
    PATTERN_FACTOR,
    TEXT_FACTOR,
    UNLIMITED,
    CallEstimate,
    CallShape,
    Cost,
    Estimate,
    Operand,
    matched,
    matched_estimate,
    size_of,
    through_text,
)
from deltaloop.cel.kubernetes.addresses import CIDR, IP, URL
from deltaloop.cel.kubernetes.authorization import AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK
from deltaloop.cel.kubernetes.named_formats import FORMAT, NamedFormat
from deltaloop.cel.kubernetes.quantities import QUANTITY
from deltaloop.cel.kubernetes.versions import SEMVER
from deltaloop.cel.operators import SIMPLE
from deltaloop.cel.values import LIST_KINDS, kind_of
from deltaloop.schemas.work import charge

_Values: TypeAlias = Sequence[Any]

_ONE_CHECK: Final = 350_000
_LONGEST_FORMAT_NAME: Final = 64
_LONGEST_NAME_PATTERN: Final = 128
# Bytes of an address.
_ADDRESS: Final = Estimate(4, 16)


def _always(cost: int) -> Cost:
    return Cost(lambda _values, _result: cost, lambda _: (Estimate(cost, cost), None))


def _through(factor: float = TEXT_FACTOR, *, keeps_size: bool = False) -> Cost:
    def estimated(call: CallShape) -> CallEstimate | None:
        if not call.operands:
            return None
        size = call.operands[0].any_size
        return size.by(factor), size if keeps_size else None

    return Cost(lambda values, _: through_text(size_of(values[0]), factor), estimated, (0,))


def _traversed(value: Any) -> int:
    kind = kind_of(value)
    if kind is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * TEXT_FACTOR)
    if kind is bytes:
        return int(len(value) * TEXT_FACTOR)
    if kind in LIST_KINDS:
        charge(4 * len(value))
        return sum(map(_traversed, value))
    if kind is dict:
        charge(8 * len(value))
        return sum(_traversed(key) + _traversed(each) for key, each in value.items())
    return 1


def _element(call: CallShape, operand: Operand) -> Operand | None:
    if not operand.type.parameters:
        return None
    path = (*operand.path, "@items") if operand.path else ()
    return Operand(operand.type.parameters[0], path, call.hints(path) if path else None)


def _traversed_estimate(call: CallShape) -> CallEstimate | None:
    target = call.target
    if target is None:
        return None
    element = _element(call, target)
    if element is None:
        if call.function == "includes":
            return target.any_size.times(ONE), None
        return target.any_size.by(TEXT_FACTOR), None
    each = ONE
    if element.type.kind in ("string", "bytes"):
        each = each.plus(element.any_size.by(TEXT_FACTOR))
    return target.any_size.times(each), None


def _selector_cost(size: Estimate) -> Estimate:
    parts = size.by(0.5).by(float(LIST_COST + OBJECT_COST))
    return Estimate(LIST_COST, LIST_COST).plus(size.by(TEXT_FACTOR)).plus(parts)


def _selected(values: _Values, result: Any) -> int:  # noqa: ARG001
    size = size_of(values[1])
    return _selector_cost(Estimate(size, size)).most


def _replaced_estimate(call: CallShape) -> CallEstimate | None:
    if call.target is None or len(call.arguments) < 2:
        return None
    size, old, new = (each.any_size for each in call.operands[:3])
    most, most_kept = 0, 0
    if old.least == 0:
        most, most_kept = min(size.most + 1, UNLIMITED), size.most
    elif new.most <= old.least:
        most_kept = size.most
    else:
        most = _quotient(size.most, old.least)
    least, least_kept = 0, 0
    if old.most == 0:
        least, least_kept = min(size.least + 1, UNLIMITED), size.least
    elif old.most <= new.least:
        least_kept = size.least
    else:
        least = _quotient(size.least, old.most)
    result = Estimate(least, most).times(new).plus(Estimate(least_kept, most_kept))
    return size.by(2 * TEXT_FACTOR), result


def _quotient(number: int, divisor: int) -> int:
    return min(math.ceil(float(number) / float(divisor)), UNLIMITED)


def _split_estimate(call: CallShape) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.target.any_size
    most = size.most
    if len(call.arguments) > 1 and kind_of(call.arguments[1].literal) is int:
        most = int(str(call.arguments[1].literal)) & UNLIMITED
    return size.by(2 * TEXT_FACTOR), Estimate(0, most)


def _joined_estimate(call: CallShape) -> CallEstimate | None:
    if call.target is None:
        return None
    count, size = call.target.any_size, Estimate(0, 0)
    element = _element(call, call.target)
    if element is not None:
        size = count.times(element.any_size)
    if call.arguments:
        between = Estimate(max(count.least - 1, 0), max(count.most - 1, 0))
        size = size.plus(call.arguments[0].any_size.times(between))
    return size.by(TEXT_FACTOR), size


def _found_estimate(call: CallShape) -> CallEstimate | None:
    if call.target is None or not call.arguments:
        return None
    cost, _ = matched_estimate(call)
    return cost, Estimate(0, call.target.any_size.most)


def _contains_estimate(call: CallShape) -> CallEstimate | None:
    if not call.arguments:
        return None
    cost = _ADDRESS.plus(_ADDRESS).by(TEXT_FACTOR)
    if call.function == "containsCIDR":
        cost = cost.plus(_ADDRESS.by(TEXT_FACTOR)).plus(ONE)
    if call.overload.endswith("_string"):
        cost = cost.plus(call.arguments[0].any_size.by(TEXT_FACTOR))
    return cost, None


def _contained(values: _Values, result: Any) -> int:  # noqa: ARG001
    size = size_of(values[0])
    cost = through_text(2 * size)
    is_text = values[1] is None or kind_of(values[1]) is str
    return cost + through_text(size_of(values[1])) if is_text else cost


def _network_contained(values: _Values, result: Any) -> int:
    return _contained(values, result) + through_text(size_of(values[0])) + 1


def _validated(values: _Values, result: Any) -> int | None:  # noqa: ARG001
    wanted, text = values
    if not isinstance(wanted, NamedFormat):
        return None
    return through_text(1 + size_of(text)) * through_text(wanted.pattern_size, PATTERN_FACTOR)


def _validated_estimate(call: CallShape) -> CallEstimate | None:
    if not call.arguments:
        return None
    text = call.arguments[0].any_size.by(TEXT_FACTOR)
    return text.by(_LONGEST_NAME_PATTERN * PATTERN_FACTOR), None


def _address(values: _Values, result: Any) -> int:  # noqa: ARG001
    return through_text(size_of(values[0])) if kind_of(values[0]) is str else 1


def _address_estimate(call: CallShape) -> CallEstimate | None:
    if call.overload == "cidr_ip":
        return ONE, None
    return (call.arguments[0].any_size.by(TEXT_FACTOR), None) if call.arguments else None


_EQUAL_AT_ONCE: Final = frozenset(
    {IP, CIDR, QUANTITY, SEMVER, AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION}
)


def _equality(values: _Values, result: Any) -> int | None:  # noqa: ARG001
    kind = kind_of(values[0])
    return 1 if kind not in SIMPLE and hasattr(kind, "cel_equals") else None


def _equality_estimate(call: CallShape) -> CallEstimate | None:
    one, other = call.arguments
    if one.type != other.type:
        return None
    if one.type in _EQUAL_AT_ONCE:
        return ONE, None
    if one.type == FORMAT:
        return Estimate(1, _LONGEST_FORMAT_NAME).by(TEXT_FACTOR), None
    if one.type == URL:
        most = other.size.most if other.size is not None else 1
        return Estimate(1, most).by(TEXT_FACTOR), None
    return None


def _named(names: str, cost: Cost) -> dict[str, Cost]:
    return dict.fromkeys(names.split(), cost)


KUBERNETES_COSTS: Final = {
    **_named("check", _always(_ONE_CHECK)),
    **_named(
        "serviceAccount path group resource subresource namespace name allowed reason error errored "
        "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast "
        "format.named sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub "
        "major minor patch getScheme getHostname getHost getPort getEscapedPath getQuery",
        _always(1),
    ),
    **_named(
        "fieldSelector labelSelector",
        Cost(_selected, lambda call: (_selector_cost(call.arguments[0].any_size), None), (1,)),
    ),
    **_named(
        "isSorted sum max min indexOf lastIndexOf includes",
        Cost(lambda values, _: _traversed(values[0]), _traversed_estimate, (0,)),
    ),
    **_named("url jsonpatch.escapeKey lowerAscii upperAscii substring trim", _through(keeps_size=True)),
    **_named("cidr isIP isCIDR quantity isQuantity semver isSemver", _through()),
    **_named("ip.isCanonical", _through(2 * TEXT_FACTOR)),
    "ip": Cost(_address, _address_estimate, (0,)),
    "replace": Cost(_through(2 * TEXT_FACTOR).actual, _replaced_estimate, (0,)),
    "split": Cost(_through(2 * TEXT_FACTOR).actual, _split_estimate, (0,)),
    "join": Cost(lambda _, result: through_text(size_of(result), 2 * TEXT_FACTOR), _joined_estimate, None),
    **_named("find findAll", Cost(matched, _found_estimate, (0, 1))),
    "containsIP": Cost(_contained, _contains_estimate, (0, 1)),
    "containsCIDR": Cost(_network_contained, _contains_estimate, (0, 1)),
    "validate": Cost(_validated, _validated_estimate, (0, 1)),
    "_==_": Cost(_equality, _equality_estimate, (0,)),
}
