"""CustomResourceDefinitions: defaults, names, conditions and served resources.

If a name is already in use, the CRD serves its previously accepted names, or nothing if it is new. Established never
becomes false again.

Source: apiextensions-apiserver pkg/controller/status, pkg/controller/establish; pkg/apihelpers
(``GetAPIApprovalState``), pkg/controller/apiapproval; apimachinery pkg/version/helpers.go
(``CompareKubeAwareVersionStrings``); apiextensions-apiserver pkg/registry/customresource/{strategy,validator}.go;
apimachinery pkg/apis/meta/v1/unstructured/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from deltaloop.api.json_values import at, copied, integer, is_mapping, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core.crds.codec import CustomCodec, embedded_errors
from deltaloop.apiserver.core.crds.conversion import REVIEW_VERSIONS, has_authority
from deltaloop.apiserver.core.crds.conversion_webhook import ConversionWebhook
from deltaloop.apiserver.core.served_resource import NAME_COLUMN, ScalePaths, ServedResource, TableColumn
from deltaloop.apiserver.core.strategy import Flags, Strategy, Writes
from deltaloop.apiserver.core.webhook_calls import endpoint_of
from deltaloop.crds.rules.compiled import may_have_rules, rules_of
from deltaloop.crds.rules.evaluation import evaluate
from deltaloop.schemas.decoding import schema_errors, status_errors
from deltaloop.schemas.field_errors import SchemaError, invalid_value
from deltaloop.schemas.go_numbers import go_type
from deltaloop.schemas.schema_compiler import schema_from_json
from deltaloop.schemas.structural import schemas_in, unknown_formats, unsupported_sets
from deltaloop.schemas.types import Schema

_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_MOST_REPLICAS: Final = 2**31 - 1
LABEL_REFUSAL: Final = "field label not supported: {}"
FLAGS: Final = Flags(
    generation=True,
    unconditional_update=False,
    base_rechecked=False,
    any_finalizer=True,
    status_metadata=frozenset(),
    status_restores="metadata",
    self_described=True,
    protobuf=False,
    strategic_merge=False,
    own_finalizers=False,
)


def custom_strategy(schema: Schema, scale: ScalePaths | None) -> Strategy:
    """Evaluate the validation rules of a schema, unless another error prevents evaluation."""
    has_rules = may_have_rules(schema.source)

    def errors(
        found: list[SchemaError], fields: dict[str, object], before: dict[str, object] | None = None
    ) -> list[SchemaError]:
        found += [*embedded_errors(schema, fields), *replicas_errors(scale, fields)]
        return found + rule_errors(schema, fields, before, found) if has_rules else found

    def new_errors(fields: dict[str, object]) -> list[SchemaError]:
        return errors(schema_errors(schema, fields), fields)

    def update_errors(before: dict[str, object], after: dict[str, object]) -> list[SchemaError]:
        return errors(schema_errors(schema, after, before), after, before)

    def wrong_status(before: dict[str, object], after: dict[str, object]) -> list[SchemaError]:
        return errors(status_errors(schema, after, before), after, before)

    return Strategy(
        validate_new=new_errors,
        validate_update=update_errors,
        validate_status=wrong_status,
        check_new=_check_open,
        removed=_removed,
    )


def rule_errors(
    schema: Schema, fields: dict[str, object], before: dict[str, object] | None, others: list[SchemaError]
) -> list[SchemaError]:
    root = rules_of(schema.source)
    if root is None:
        return []
    if any(error.reason in _BLOCKING for error in others):
        words = "some validation rules were not checked because the object was invalid; correct the existing errors to "
        return [invalid_value("<nil>", None, f"{words}complete validation")]
    return evaluate(root, schema.tree, fields, before)


def _check_open(kind: ResourceType[Resource], name: str, writes: Writes) -> None:
    writes.crds.check_open(kind, name)


def _removed(resource: str, _obj: Resource, writes: Writes, now: float) -> None:
    writes.crds.finish(resource, now=now)


def replicas_errors(paths: ScalePaths | None, fields: dict[str, object]) -> Iterator[SchemaError]:
    if paths is None:
        return
    for path in (paths.spec_replicas, paths.status_replicas):
        value, why = _reach(path, fields)
        if why or (value is not None and type(value) is not int):
            yield invalid_value(path, 0, why or _another_type(path, value, "int64"))
        elif value is not None and value < 0:
            yield invalid_value(path, value, "should be a non-negative integer")
        elif value is not None and value > _MOST_REPLICAS:
            yield invalid_value(path, value, f"should be less than or equal to {_MOST_REPLICAS}")
    if paths.label_selector:
        value, why = _reach(paths.label_selector, fields)
        if why or (value is not None and not isinstance(value, str)):
            shown = why or _another_type(paths.label_selector, value, "string")
            yield invalid_value(paths.label_selector, "", shown)


def _reach(path: str, fields: dict[str, object]) -> tuple[Any, str]:
    """Return the value at a simple path (None if it is missing) and an error message."""
    value: Any = fields
    names = path.strip(".").split(".")
    for count, name in enumerate(names, start=1):
        if value is None:
            return None, ""
        if not is_mapping(value):
            return None, _another_type(f".{'.'.join(names[:count])}", value, "map[string]interface{}")
        value = value.get(name)
    return value, ""


def _another_type(path: str, value: object, wanted: str) -> str:
    return f"{path} accessor error: it is of the type {go_type(value)}, expected {wanted}"


APPROVED: Final = "api-approved.kubernetes.io"
_RULE: Final = f'protected groups must have approval annotation "{APPROVED}"'
_SOURCE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


class Approval(NamedTuple):
    status: str
    reason: str
    message: str

    @property
    def is_given(self) -> bool:
        """Whether the annotation is valid, approved or explicitly unapproved, so that the CRD can be stored."""
        return self.reason in ("ApprovedAnnotation", "UnapprovedAnnotation")


def approval_of(crd: dict[str, Any]) -> Approval | None:
    group = f".{text(at(crd, 'spec', 'group'))}"
    if not group.endswith((".k8s.io", ".kubernetes.io")):
        return None
    given = text(at(crd, "metadata", "annotations", APPROVED))
    if not given:
        return Approval("False", "MissingAnnotation", f"{_RULE}, {_SOURCE}")
    if given.startswith("unapproved"):
        return Approval("False", "UnapprovedAnnotation", f"not approved: {msgspec.json.encode(given).decode()}")
    if _is_address(given):
        return Approval("True", "ApprovedAnnotation", f"approved in {given}")
    words = f'{_RULE} with either a URL or a reason starting with "unapproved", {_SOURCE}'
    return Approval("False", "InvalidAnnotation", words)


def _is_address(given: str) -> bool:
    try:
        parts = urlsplit(given)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def version_order(version: str) -> tuple[int, int, int, int, str]:
    """Return a sort key: stable before beta before alpha, higher numbers first, other names last by alphabet."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    return (0, _STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), "")


_WEBHOOK_PORT: Final = 443
_encode_sorted: Final = msgspec.json.Encoder(order="deterministic").encode
_AGE: Final = TableColumn("Age", "date", ".metadata.creationTimestamp", "Time since the object was created.")
# In the order of discovery.
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


def default_crd(crd: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a CRD with singular name, list kind and conversion."""
    result: dict[str, Any] = copied(crd)
    spec = result.get("spec")
    if not is_mapping(spec):
        return result
    names = mapping(spec.get("names"))
    kind = text(names.get("kind"))
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    conversion = spec["conversion"] = {"strategy": "None"} if spec.get("conversion") is None else spec["conversion"]
    service = at(conversion, "webhook", "clientConfig", "service")
    if is_mapping(service):
        service.setdefault("port", _WEBHOOK_PORT)
    return result


def with_condition(
    crd: Mapping[str, object], kind: str, state: tuple[str, str, str], time: str
) -> list[dict[str, object]]:
    """Return the conditions of a CRD after a change to a status, reason and message."""
    conditions = [mapping(item) for item in items(at(crd, "status", "conditions"))]
    new = _changed(crd, kind, state, time)
    if any(item.get("type") == kind for item in conditions):
        return [new if item.get("type") == kind else item for item in conditions]
    return [*conditions, new]


def is_established(crd: dict[str, Any]) -> bool:
    return _condition(crd, "Established").get("status") == "True"


def crd_status(crd: dict[str, Any], others: Iterable[ServedResource], *, now: float) -> dict[str, Any]:
    """Return the new status of a CRD; ``others`` are the other resources, and ``now`` is in seconds since 1970."""
    wanted = mapping(at(crd, "spec", "names"))
    accepted = dict(mapping(at(crd, "status", "acceptedNames")))
    reason, message = "NoConflicts", "no conflicts found"
    for field, value, conflict in _wanted_names(wanted, _names_in_use(crd, others)):
        if conflict:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            message = f'"{conflict}" is already in use'
        else:
            accepted[field] = value
    is_accepted = reason == "NoConflicts"
    if is_accepted:
        accepted = {"plural": "", "kind": "", **{name: value for name, value in wanted.items() if value}}
    accepted = {name: value for name, value in accepted.items() if value or name in ("plural", "kind")}
    if is_accepted and not is_established(crd) and not has_authority(crd):
        established = ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
    elif is_accepted or is_established(crd):
        established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        established = ("False", "NotAccepted", "not all names are accepted")
    time = format_time(from_epoch(now))
    conditions = [
        _changed(crd, "NamesAccepted", ("True" if is_accepted else "False", reason, message), time),
        _changed(crd, "Established", established, time),
    ]
    approval = approval_of(crd)
    if approval is not None:
        conditions.append(_changed(crd, "KubernetesAPIApprovalPolicyConformant", approval, time))
    known = {item["type"] for item in conditions}
    conditions += [mapping(item) for item in items(at(crd, "status", "conditions")) if at(item, "type") not in known]
    stored = [*texts(at(crd, "status", "storedVersions"))]
    stored += [name for name in storage_versions(crd) if name not in stored]
    return {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}


def crd_resources(crd: dict[str, Any]) -> tuple[ServedResource, ...]:
    """Return the resources of the served versions with the accepted names, or none before the CRD is established."""
    if not is_established(crd):
        return ()
    group, names = text(at(crd, "spec", "group")), mapping(at(crd, "status", "acceptedNames"))
    versions = [mapping(version) for version in items(at(crd, "spec", "versions"))]
    schemas = {f"{group}/{text(item.get('name'))}": schema_from_json(_schema_of(item)) for item in versions}
    webhook = _conversion_webhook(crd, schemas)
    return tuple(
        _served_version(crd, names, version, schemas, webhook) for version in versions if at(version, "served") is True
    )


def crd_warnings(crd: dict[str, Any]) -> tuple[str, ...]:
    """Return warnings about unknown formats and sets of non-scalar items."""
    versions = items(at(crd, "spec", "versions"))
    schemas = [each for version in versions for each in schemas_in(at(version, "schema", "openAPIV3Schema"))]
    unknown = dict.fromkeys(unknown_formats(schemas))
    sets = sorted({*unsupported_sets(schemas)})
    return (
        *(f'unrecognized format "{name}"' for name in unknown),
        *(
            f'x-kubernetes-list-type: set for items of type "{kind}" is not supported by server-side apply or CEL '
            "validation rules"
            for kind in sets
        ),
    )


def storage_version(crd: dict[str, Any]) -> str:
    return next(iter(storage_versions(crd)), "")


def _conversion_webhook(crd: dict[str, Any], schemas: Mapping[str, Schema]) -> ConversionWebhook | None:
    conversion = mapping(at(crd, "spec", "conversion"))
    if conversion.get("strategy") != "Webhook":
        return None
    group, webhook = text(at(crd, "spec", "group")), conversion.get("webhook")
    versions = [mapping(version) for version in items(at(crd, "spec", "versions"))]
    oldest = next(iter(texts(at(crd, "status", "storedVersions"))), storage_version(crd))
    return ConversionWebhook(
        kind=text(at(crd, "status", "acceptedNames", "kind")),
        endpoint=endpoint_of(at(webhook, "clientConfig")),
        review_version=next(name for name in texts(at(webhook, "conversionReviewVersions")) if name in REVIEW_VERSIONS),
        schemas=schemas,
        stored=f"{group}/{storage_version(crd)}",
        oldest=f"{group}/{oldest}",
        definition=sha256(_encode_sorted([group, oldest, versions, conversion])).hexdigest(),
    )


def _served_version(
    crd: dict[str, Any],
    names: dict[str, Any],
    version: dict[str, Any],
    schemas: Mapping[str, Schema],
    webhook: ConversionWebhook | None,
) -> ServedResource:
    group, scale = text(at(crd, "spec", "group")), at(version, "subresources", "scale")
    paths = _scale_paths(scale) if is_mapping(scale) else None
    kind = ResourceType[Resource](
        group=group,
        version=text(version.get("name")),
        kind=text(names.get("kind")),
        plural=text(names.get("plural")),
        namespaced=at(crd, "spec", "scope") == "Namespaced",
    )
    schema, stored = schemas[kind.api_version], schemas[f"{group}/{storage_version(crd)}"]
    columns = [_column(mapping(column)) for column in items(version.get("additionalPrinterColumns"))]
    return ServedResource(
        type=kind,
        singular=text(names.get("singular")),
        list_kind=text(names.get("listKind")),
        short_names=texts(names.get("shortNames")),
        categories=texts(names.get("categories")),
        verbs=_VERBS,
        status=isinstance(at(version, "subresources", "status"), dict),
        scale_paths=paths,
        strategy=custom_strategy(schema, paths),
        codec=CustomCodec(
            kind,
            schema,
            stored if stored != schema else None,
            storage_version=f"{group}/{storage_version(crd)}",
            webhook=webhook,
        ),
        flags=FLAGS,
        schema=schema,
        columns=(NAME_COLUMN, *(columns or [_AGE])),
        field_labels=tuple(
            text(at(field, "jsonPath")).removeprefix(".") for field in items(version.get("selectableFields"))
        ),
        label_refusal=LABEL_REFUSAL,
        etcd_prefix=f"{group}/{text(names.get('plural'))}",
        deprecation=_deprecation(crd, version),
        versions=schemas,
    )


def _deprecation(crd: dict[str, Any], version: dict[str, Any]) -> str:
    """Return the warning about a deprecated version: the author's, or a default that names the replacement."""
    if version.get("deprecated") is not True:
        return ""
    own = text(version.get("deprecationWarning"))
    if own:
        return own
    group, name, kind = (
        text(at(crd, "spec", "group")),
        text(version.get("name")),
        text(at(crd, "spec", "names", "kind")),
    )
    others = (mapping(other) for other in items(at(crd, "spec", "versions")))
    newer = [
        text(other.get("name"))
        for other in others
        if other.get("served") is True and other.get("deprecated") is not True
    ]
    newer = sorted((other for other in newer if version_order(other) < version_order(name)), key=version_order)
    instead = f"; use {group}/{newer[0]} {kind}" if newer else ""
    return f"{group}/{name} {kind} is deprecated{instead}"


def _schema_of(version: dict[str, Any]) -> bytes:
    schema = at(version, "schema", "openAPIV3Schema")
    return msgspec.json.encode(schema) if schema is not None else b""


def _scale_paths(scale: dict[str, Any]) -> ScalePaths:
    return ScalePaths(
        spec_replicas=text(scale.get("specReplicasPath")),
        status_replicas=text(scale.get("statusReplicasPath")),
        label_selector=text(scale.get("labelSelectorPath")),
        default=None,
    )


def _column(column: dict[str, Any]) -> TableColumn:
    return TableColumn(
        name=text(column.get("name")),
        type=text(column.get("type")),
        json_path=text(column.get("jsonPath")),
        description=text(column.get("description"))
        or f"Custom resource definition column (in JSONPath format): {text(column.get('jsonPath'))}",
        format=text(column.get("format")),
        priority=integer(column.get("priority")),
    )


def storage_versions(crd: dict[str, Any]) -> list[str]:
    """Return the names of the versions with ``storage: true``. A valid CRD has one version."""
    versions = items(at(crd, "spec", "versions"))
    return [text(at(version, "name")) for version in versions if at(version, "storage") is True]


def _condition(crd: Mapping[str, object], kind: str) -> dict[str, Any]:
    conditions = items(at(crd, "status", "conditions"))
    return mapping(next((item for item in conditions if at(item, "type") == kind), None))


def _changed(crd: Mapping[str, object], kind: str, state: tuple[str, str, str], time: str) -> dict[str, object]:
    status, reason, message = state
    old = _condition(crd, kind)
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": since or time,
        "reason": reason,
        "message": message,
    }


def _names_in_use(crd: dict[str, Any], others: Iterable[ServedResource]) -> tuple[set[str], set[str]]:
    group = at(crd, "spec", "group")
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other.type.group == group:
            resources |= {other.type.plural, other.singular, *other.short_names}
            kinds |= {other.type.kind, other.list_kind}
    return resources, kinds


def _wanted_names(wanted: dict[str, Any], in_use: tuple[set[str], set[str]]) -> Iterator[tuple[str, Any, str]]:
    resources, kinds = in_use
    for field in ("plural", "singular"):
        name = text(wanted.get(field))
        yield field, name, name if name in resources else ""
    short_names = texts(wanted.get("shortNames"))
    yield "shortNames", list(short_names), next((name for name in short_names if name in resources), "")
    for field in ("kind", "listKind"):
        name = text(wanted.get(field))
        yield field, name, name if name in kinds else ""
