"""RBAC roles and bindings, and ServiceAccount with its ``token`` subresource.

Source: Kubernetes pkg/apis/rbac/validation; pkg/printers/internalversion/printers.go;
pkg/registry/core/serviceaccount/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.field_checks import one_of, selector_errors
from deltaloop.apiserver.core.metadata.rules import subdomain_errors
from deltaloop.apiserver.core.strategy import Cell, Strategy, Subresource
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, invalid_value, not_supported, required

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def _rule_errors(place: Place) -> Iterator[SchemaError]:
    rule, path = place.fields, place.below("nonResourceURLs")
    urls = texts(rule.get("nonResourceURLs"))
    if urls:
        if at(place.whole, "metadata", "namespace"):
            yield invalid_value(path, urls, "namespaced rules cannot apply to non-resource URLs")
        if any(texts(rule.get(name)) for name in ("apiGroups", "resources", "resourceNames")):
            yield invalid_value(path, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    for name, what in (("apiGroups", "api group"), ("resources", "resource")):
        if not texts(rule.get(name)):
            yield required(place.below(name), f"resource rules must supply at least one {what}")


def _kind_errors(place: Place) -> Iterator[SchemaError]:
    namespaced = at(place.whole, "metadata", "namespace")
    yield from one_of(place.value, place.path, ("Role", "ClusterRole") if namespaced else ("ClusterRole",))


def _subject_defaults(subject: dict[str, object]) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _GROUP


def _subject_errors(place: Place) -> Iterator[SchemaError]:
    kind, path = text(place.fields.get("kind")), place.below("apiGroup")
    group = text(place.fields.get("apiGroup"))
    if kind == "ServiceAccount" and place.fields.get("name"):
        yield from subdomain_errors(text(place.fields["name"]), place.below("name"))
    if kind not in _SUBJECTS:
        yield not_supported(place.below("kind"), kind, _SUBJECTS)
    elif kind == "ServiceAccount":
        yield from one_of(group, path, ("",))
        if not (place.fields.get("namespace") or at(place.whole, "metadata", "namespace")):
            yield required(place.below("namespace"))
    else:
        yield from one_of(group, path, (_GROUP,))


def _binding_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = mapping(before.get("roleRef")), mapping(after.get("roleRef"))
    if old != new:
        in_go = {"APIGroup": new.get("apiGroup"), "Kind": new.get("kind"), "Name": new.get("name")}
        yield invalid_value("roleRef", in_go, IMMUTABLE)


def _role(binding: Mapping[str, object]) -> str:
    return f"{text(at(binding, 'roleRef', 'kind'))}/{text(at(binding, 'roleRef', 'name'))}"


def _name(subject: object) -> str:
    return text(at(subject, "name"))


def _name_and_namespace(subject: object) -> str:
    return f"{text(at(subject, 'namespace'))}/{_name(subject)}"


def _subjects(kind: str, shown_subject: Callable[[object], str] = _name) -> Cell:
    def cell(binding: Mapping[str, object]) -> str:
        subjects = items(binding.get("subjects"))
        return ", ".join(shown_subject(subject) for subject in subjects if at(subject, "kind") == kind)

    return cell


def _selectors_errors(place: Place) -> Iterator[SchemaError]:
    for number, selector in enumerate(items(place.value)):
        if any(selector_errors(selector, "")):
            yield invalid_value(f"{place.path}[{number}]", selector, "invalid label selector.")


STRATEGY: Final = Strategy(checks={"aggregated": _selectors_errors, "ruled_resources": _rule_errors})
BINDING: Final = Strategy(
    defaults={"rbac.v1.Subject": _subject_defaults},
    checks={"kind_of_role": _kind_errors, "subject": _subject_errors},
    validate_update=_binding_update_errors,
    cells={
        "Role": _role,
        "Users": _subjects("User"),
        "Groups": _subjects("Group"),
        "ServiceAccounts": _subjects("ServiceAccount", _name_and_namespace),
    },
)


_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"


def _warnings(account: Mapping[str, object]) -> Iterator[str]:
    if at(account, "metadata", "annotations", _MOUNTABLE) is not None:
        yield (
            f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access "
            "to mounted secrets"
        )


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "metadata", "annotations", _MOUNTABLE) is None:
        yield from _warnings(after)


ACCOUNT: Final = Strategy(
    warn_new=_warnings,
    warn_update=_update_warnings,
    subresources=(Subresource("token", "authentication.k8s.io", "v1", "TokenRequest", ("create",)),),
)
