"""FlowSchema and PriorityLevelConfiguration.

Source: Kubernetes pkg/apis/flowcontrol/validation/validation.go; apiserver pkg/util/shufflesharding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.field_checks import one_of
from deltaloop.apiserver.core.metadata.rules import label_name_errors, subdomain_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required

_ALL: Final = "*"
_EXEMPT: Final = "exempt"
_VERBS: Final = frozenset({"get", "list", "create", "update", "delete", "deletecollection", "patch", "watch", "proxy"})
_SUBJECTS: Final = {"ServiceAccount": "serviceAccount", "Group": "group", "User": "user"}
_MOST_QUEUES: Final = 10_000_000
_MOST_BITS: Final = 60


def _subject_errors(place: Place) -> Iterator[SchemaError]:
    subject, kind = place.fields, text(place.fields.get("kind"))
    if kind not in _SUBJECTS:
        yield not_supported(place.below("kind"), kind, sorted(_SUBJECTS))
        return
    for other, name in _SUBJECTS.items():
        if other != kind and is_mapping(subject.get(name)):
            yield forbidden_field(place.below(name), f"{name} is forbidden when subject kind is not '{other}'")
    path = place.below(_SUBJECTS[kind])
    if not is_mapping(subject.get(_SUBJECTS[kind])):
        yield required(path, f"{_SUBJECTS[kind]} is required when subject kind is '{kind}'")
        return
    name, namespace = (text(at(subject, _SUBJECTS[kind], field)) for field in ("name", "namespace"))
    if not name:
        yield required(f"{path}.name")
    elif kind == "ServiceAccount" and name != _ALL:
        yield from subdomain_errors(name, f"{path}.name")
    if kind == "ServiceAccount":
        yield from label_name_errors(namespace, f"{path}.namespace") if namespace else (required(f"{path}.namespace"),)


def _verb_errors(place: Place) -> Iterator[SchemaError]:
    verbs, path = texts(place.fields.get("verbs")), place.below("verbs")
    if not verbs:
        yield required(path, "verbs must contain at least one value")
    elif _ALL in verbs:
        yield from _alone_errors(verbs, path)
    elif not _VERBS.issuperset(verbs):
        yield not_supported(path, ",".join(verbs), sorted(_VERBS))


def _alone_errors(values: tuple[str, ...], path: str) -> Iterator[SchemaError]:
    if _ALL in values and len(values) > 1:
        yield invalid_value(path, list(values), "if '*' is present, must not specify other values")


def _resource_rule_errors(place: Place) -> Iterator[SchemaError]:
    yield from _verb_errors(place)
    for name in ("apiGroups", "resources"):
        values = texts(place.fields.get(name))
        yield from _alone_errors(values, place.below(name)) if values else (required(place.below(name)),)
    namespaces, path = texts(place.fields.get("namespaces")), place.below("namespaces")
    if not namespaces and place.fields.get("clusterScope") is not True:
        yield required(path, "resource rules that are not cluster scoped must supply at least one namespace")
    elif _ALL in namespaces:
        yield from _alone_errors(namespaces, path)
    else:
        for number, namespace in enumerate(namespaces):
            yield from label_name_errors(namespace, f"{path}[{number}]")


def _url_rule_errors(place: Place) -> Iterator[SchemaError]:
    yield from _verb_errors(place)
    urls, path = texts(place.fields.get("nonResourceURLs")), place.below("nonResourceURLs")
    if not urls:
        yield required(path, "nonResourceURLs must contain at least one value")
    elif _ALL in urls:
        yield from _alone_errors(urls, path)
    else:
        for number, url in enumerate(urls):
            if url != "/" and not _is_path(url):
                yield invalid_value(f"{path}[{number}]", url, "must be a path, with a wildcard at its end only")


def _is_path(url: str) -> bool:
    fine = url.startswith("/") and " " not in url and "//" not in url
    return fine and ("*" not in url or (url.count("*") == 1 and url.endswith("/*")))


def _rule_errors(place: Place) -> Iterator[SchemaError]:
    if not items(place.fields.get("subjects")):
        yield required(place.below("subjects"), "subjects must contain at least one value")
    if not items(place.fields.get("resourceRules")) and not items(place.fields.get("nonResourceRules")):
        yield required(place.path, "at least one of resourceRules and nonResourceRules has to be non-empty")


def _schema_errors(place: Place) -> Iterator[SchemaError]:
    schema = place.fields
    if integer(schema.get("matchingPrecedence")) == 1 and at(place.whole, "metadata", "name") != _EXEMPT:
        text_ = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield invalid_value(place.below("matchingPrecedence"), 1, text_)
    name, path = text(at(schema, "priorityLevelConfiguration", "name")), place.below("priorityLevelConfiguration.name")
    yield from subdomain_errors(name, path) if name else (required(path, "must reference a priority level"),)


def _level_errors(place: Place) -> Iterator[SchemaError]:
    level, kind = place.fields, text(place.fields.get("type"))
    if (at(place.whole, "metadata", "name") == _EXEMPT) is not (kind == "Exempt"):
        yield invalid_value(place.below("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if level.get("limited") is not None:
            yield forbidden_field(place.below("limited"), "must be nil if the type is not Limited")
    elif kind == "Limited":
        if level.get("exempt") is not None:
            yield forbidden_field(place.below("exempt"), "must be nil if the type is Limited")
        if not is_mapping(level.get("limited")):
            yield required(place.below("limited"), "must not be empty when type is Limited")
    else:
        if kind:
            yield from one_of(kind, place.below("type"), ("Exempt", "Limited"))
        if level.get("limited") is not None:
            yield forbidden_field(place.below("limited"), "must be nil if the type is not Limited")


def _response_errors(place: Place) -> Iterator[SchemaError]:
    kind, queuing, path = text(place.fields.get("type")), place.fields.get("queuing"), place.below("queuing")
    if kind != "Queue" and queuing is not None:
        yield forbidden_field(path, "must be nil if limited.limitResponse.type is not Limited")
    if kind == "Queue" and not is_mapping(queuing):
        yield required(path, "must not be empty if limited.limitResponse.type is Limited")
    elif kind == "Queue":
        yield from _queuing_errors(mapping(queuing), path)
    elif kind != "Reject" and kind:
        yield from one_of(kind, place.below("type"), ("Queue", "Reject"))


def _queuing_errors(queuing: dict[str, object], path: str) -> Iterator[SchemaError]:
    length, queues, hand = (integer(queuing.get(name)) for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield invalid_value(f"{path}.queueLengthLimit", length, "must be positive")
    if not 0 < queues <= _MOST_QUEUES:
        yield invalid_value(f"{path}.queues", queues, f"must be positive and at most {_MOST_QUEUES}")
    if hand <= 0:
        yield invalid_value(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid_value(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif _bits(queues, hand) > _MOST_BITS:
        yield invalid_value(f"{path}.handSize", hand, f"required entropy bits should not be over {_MOST_BITS}")


def _bits(queues: int, hand: int) -> float:
    """Return the number of random bits for the shuffle sharding of one flow."""
    return hand * math.log2(queues) if hand <= _MOST_BITS else math.inf


def _order(schema: Mapping[str, object]) -> tuple[int, str]:
    """Return the sort key of a FlowSchema: the order in which the server evaluates the schemas."""
    return integer(at(schema, "spec", "matchingPrecedence")), text(at(schema, "metadata", "name"))


SCHEMA: Final = Strategy(
    row_order=_order,
    checks={
        "flow_resources": _resource_rule_errors,
        "flow_rule": _rule_errors,
        "flow_schema": _schema_errors,
        "flow_subject": _subject_errors,
        "flow_urls": _url_rule_errors,
    },
)
LEVEL: Final = Strategy(checks={"limit_response": _response_errors, "priority_level": _level_errors})
