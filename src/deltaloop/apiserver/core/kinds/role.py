"""Role and ClusterRole, and what binds them to users: RoleBinding and ClusterRoleBinding.

Source: Kubernetes pkg/apis/rbac/validation; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import IMMUTABLE, each, needs, one_of, shown
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.faults import FieldError, invalid_value, not_supported, required
from deltaloop.schemas.json_values import at, items, mapping, text, texts

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def _role_errors(role: Mapping[str, object]) -> Iterator[FieldError]:
    for where, rule in each(role, "rules"):
        urls, path = texts(rule.get("nonResourceURLs")), f"{where}.nonResourceURLs"
        if not texts(rule.get("verbs")):
            yield required(f"{where}.verbs")
        if urls:
            if at(role, "metadata", "namespace"):
                yield invalid_value(path, shown(urls), "namespaced rules cannot apply to non-resource URLs")
            if any(texts(rule.get(name)) for name in ("apiGroups", "resources", "resourceNames")):
                text_ = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid_value(path, shown(urls), text_)
            continue
        for name, what in (("apiGroups", "api group"), ("resources", "resource")):
            if not texts(rule.get(name)):
                yield required(f"{where}.{name}", f"resource rules must supply at least one {what}")


def _binding_errors(binding: Mapping[str, object]) -> Iterator[FieldError]:
    namespaced = bool(at(binding, "metadata", "namespace"))
    role, known = binding.get("roleRef"), ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    yield from one_of(at(role, "apiGroup") or "", "roleRef.apiGroup", (_GROUP,))
    yield from one_of(at(role, "kind") or "", "roleRef.kind", known)
    yield from needs(role, "name", path="roleRef")
    for where, subject in each(binding, "subjects"):
        yield from _subject_errors(subject, where, namespaced=namespaced)


def _subject_defaults(subject: dict[str, object]) -> None:
    if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _GROUP


def _subject_errors(subject: Mapping[str, object], where: str, *, namespaced: bool) -> Iterator[FieldError]:
    kind, group = text(subject.get("kind")), text(subject.get("apiGroup"))
    yield from needs(subject, "name", path=where)
    if kind not in _SUBJECTS:
        yield not_supported(f"{where}.kind", kind, _SUBJECTS)
    elif kind == "ServiceAccount":
        yield from one_of(group, f"{where}.apiGroup", ("",))
        if not namespaced:
            yield from needs(subject, "namespace", path=where)
    else:
        yield from one_of(group, f"{where}.apiGroup", (_GROUP,))


def _binding_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    old, new = mapping(before.get("roleRef")), mapping(after.get("roleRef"))
    if old != new:
        in_go = {"APIGroup": new.get("apiGroup"), "Kind": new.get("kind"), "Name": new.get("name")}
        yield invalid_value("roleRef", shown(in_go), IMMUTABLE)


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


STRATEGY: Final = Strategy(validate=_role_errors)
BINDING: Final = Strategy(
    defaults={"rbac.v1.Subject": _subject_defaults},
    validate=_binding_errors,
    validate_update=_binding_update_errors,
    cells={
        "Role": _role,
        "Users": _subjects("User"),
        "Groups": _subjects("Group"),
        "ServiceAccounts": _subjects("ServiceAccount", _name_and_namespace),
    },
)
