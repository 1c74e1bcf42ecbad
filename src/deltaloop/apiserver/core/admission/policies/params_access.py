"""Permission checks for the params of policies and bindings, because expressions can reveal their content.

    a policy with a paramKind       needs ``get`` on all objects of the kind
    a binding with a paramRef       needs ``get`` on the object, or ``list`` for a selector

If the kind cannot be found, all permissions are necessary.

Source: Kubernetes pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import at, text
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.apiserver.core.admission.policies.bound import fields_of
from deltaloop.apiserver.core.user import Attributes, User
from deltaloop.schemas.field_errors import forbidden_field

_GROUP: Final = "admissionregistration.k8s.io"
_POLICIES: Final = tuple(f"{kind}admissionpolicies.{_GROUP}" for kind in ("validating", "mutating"))
_BINDINGS: Final = tuple(f"{kind}admissionpolicybindings.{_GROUP}" for kind in ("validating", "mutating"))


def _check(attributes: AdmissionAttributes) -> None:
    is_policy = attributes.served.storage in _POLICIES
    why = _missing_for_policy(attributes) if is_policy else _missing_for_binding(attributes)
    if why:
        error = forbidden_field("spec.paramKind" if is_policy else "spec.paramRef", why)
        raise status_errors.invalid(attributes.served.type, attributes.shown_name, [error])


def _missing_for_policy(attributes: AdmissionAttributes) -> str:
    kind = at(attributes.after, "spec", "paramKind")
    if kind is None or kind == at(attributes.before, "spec", "paramKind"):
        return ""
    if _may(attributes, "get", kind, namespace="*", name="*"):
        return ""
    return (
        f'user {_shown(attributes.user)} must have "get" permission on all objects of the referenced paramKind '
        f"(kind={text(at(kind, 'kind'))}, apiVersion={text(at(kind, 'apiVersion'))})"
    )


def _missing_for_binding(attributes: AdmissionAttributes) -> str:
    after, before = at(attributes.after, "spec"), at(attributes.before, "spec")
    reference, policy_name = at(after, "paramRef"), text(at(after, "policyName"))
    if reference is None or (reference, policy_name) == (at(before, "paramRef"), text(at(before, "policyName"))):
        return ""
    stored = _POLICIES[_BINDINGS.index(attributes.served.storage)]
    policy = attributes.objects.get(stored, policy_name)
    kind = None if policy is None else at(fields_of(policy.raw), "spec", "paramKind")
    name = text(at(reference, "name"))
    verb = "get" if name else "list"
    if _may(attributes, verb, kind, namespace=text(at(reference, "namespace")), name=name):
        return ""
    user = _shown(attributes.user)
    everything = f'permissions and user {user} does not have "{verb}" permission for all groups, versions and resources'
    if policy is None:
        return f"unable to get policy {policy_name} to determine minimum required {everything}"
    if kind is not None and _resource(attributes, kind) is None:
        shown = f"&{{{text(at(kind, 'apiVersion'))} {text(at(kind, 'kind'))}}}"
        return f"unable to resolve paramKind {shown} to determine minimum required {everything}"
    return f'user {user} does not have "{verb}" permission on the object referenced by paramRef'


def _resource(attributes: AdmissionAttributes, kind: object) -> tuple[str, str, str] | None:
    group, _, version = text(at(kind, "apiVersion")).rpartition("/")
    found = attributes.registry.find_kind(group, version, text(at(kind, "kind")))
    return None if found is None else (group, version, found.type.plural)


def _may(attributes: AdmissionAttributes, verb: str, kind: object, *, namespace: str, name: str) -> bool:
    group, version, resource = "*", "*", "*"
    if kind is not None:
        group, _, version = text(at(kind, "apiVersion")).rpartition("/")
        found = _resource(attributes, kind)
        resource = "*" if found is None else found[2]
    wanted = Attributes(
        user=attributes.user,
        verb=verb,
        group=group,
        version=version,
        resource=resource,
        namespace=namespace,
        name=name,
    )
    return attributes.context.decide(wanted).allowed


def _shown(user: User) -> str:
    extra = " ".join(f"{name}:[{' '.join(values)}]" for name, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"


PARAMS_ACCESS: Final = Plugin(
    operations=frozenset({"CREATE", "UPDATE"}), resources=frozenset({*_POLICIES, *_BINDINGS}), validate=_check
)
"""Plugin that runs before all validating plugins and cannot be disabled."""
