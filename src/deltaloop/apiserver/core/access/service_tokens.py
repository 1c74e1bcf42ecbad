"""Service account tokens: claims and validity. The caller signs tokens and verifies signatures.

A token is valid as long as its service account exists with the same UID, and its bound object, if any.

Source: Kubernetes pkg/serviceaccount/claims.go, legacy.go; pkg/registry/core/serviceaccount/storage/token.go.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

from deltaloop.api.json_values import at, integer, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.user import User, account_groups, account_name
from deltaloop.apiserver.core.wire.request_info import authenticated
from deltaloop.schemas.field_errors import SchemaError, invalid_value

_SHORTEST: Final = 600
_LONGEST: Final = 1 << 32
_USUAL: Final = 3600
_ACCOUNTS: Final = "serviceaccounts"
_BOUND: Final = {"Node": "nodes", "Pod": "pods", "Secret": "secrets"}
_REQUEST: Final = ResourceType[Any]("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")
_IN_SECRET: Final = "kubernetes/serviceaccount"  # issuer of legacy tokens
_LEGACY: Final = "kubernetes.io/serviceaccount/"
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
_DAY: Final = 86_400.0
LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
"""Label on a Secret with the day of the last use of its token."""
Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class TokenWish:
    audiences: tuple[str, ...]
    seconds: int
    bound_kind: str = ""
    bound_name: str = ""
    bound_uid: str = ""


def parse_token_request(fields: Fields, *, namespace: str, name: str, issuer: str) -> TokenWish:
    """Parse a TokenRequest; ``issuer`` is the default audience.

    Raises InvalidError for another account or a duration out of bounds, and BadRequestError if it is bound to a kind
    other than Node, Pod or Secret.
    """
    for field, found, wanted in (("name", "name", name), ("namespace", "namespace", namespace)):
        sent = text(at(fields, "metadata", found))
        if sent and sent != wanted:
            why = f"must match the service account {field} if specified"
            error = invalid_value(f"metadata.{field}", sent[:253], why)
            raise status_errors.invalid(_REQUEST, name, [error])
    spec = mapping(fields.get("spec"))
    seconds = spec.get("expirationSeconds")
    seconds = _USUAL if seconds is None else integer(seconds)
    errors: list[SchemaError] = []
    if seconds < _SHORTEST:
        errors.append(
            invalid_value("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        )
    if seconds > _LONGEST:
        errors.append(
            invalid_value("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    bound = mapping(spec.get("boundObjectRef"))
    kind = text(bound.get("kind"))
    if errors:
        raise status_errors.invalid(_REQUEST, "", errors)
    version = text(bound.get("apiVersion"))
    if bound and (kind not in _BOUND or version != "v1"):
        group, _, version = version.rpartition("/")
        raise status_errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}"[:300])
    audiences = texts(spec.get("audiences")) or (issuer,)
    return TokenWish(audiences, seconds, kind, text(bound.get("name")), text(bound.get("uid")))


def bound_object(store: RevisionStore, wish: TokenWish, *, namespace: str, account: str) -> Resource | None:
    """Return the object for the token to be bound to, or None for an unbound token."""
    if not wish.bound_kind:
        return None
    plural = _BOUND[wish.bound_kind]
    found = store.get(plural, _key(plural, namespace, wish.bound_name))
    if found is None:
        raise status_errors.not_found(_core_type(wish.bound_kind, plural), wish.bound_name)
    if plural == "pods" and text(at(found.to_dict(), "spec", "serviceAccountName")) != account:
        raise status_errors.bad_request(
            f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        )
    if wish.bound_uid and wish.bound_uid != found.uid:
        # The real server also uses the kind instead of the resource here.
        raise status_errors.conflict(
            _core_type(wish.bound_kind, wish.bound_kind),
            wish.bound_name,
            f"the UID in the bound object reference ({wish.bound_uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    return found


def claims(
    account: Resource, wish: TokenWish, bound: Resource | None, *, issuer: str, identity: str, now: float
) -> Fields:
    """Return the claims of a token; ``identity`` is its unique ID and ``now`` is in seconds since 1970."""
    private: Fields = {
        "namespace": account.namespace,
        "serviceaccount": {"name": account.name, "uid": account.uid},
    }
    if bound is not None:
        private[wish.bound_kind.lower()] = {"name": bound.name, "uid": bound.uid}
    start = int(now)
    return {
        "aud": list(wish.audiences),
        "exp": start + wish.seconds,
        "iat": start,
        "iss": issuer,
        "jti": identity,
        "kubernetes.io": private,
        "nbf": start,
        "sub": account_name(account.namespace, account.name),
    }


def request_answer(fields: Fields, wish: TokenWish, account: Resource, *, token: str, now: float) -> Fields:
    spec: Fields = {"audiences": list(wish.audiences), "expirationSeconds": wish.seconds}
    spec["boundObjectRef"] = at(fields, "spec", "boundObjectRef")
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": account.name,
            "namespace": account.namespace,
            "uid": account.uid,
            "creationTimestamp": format_time(from_epoch(now)),
        },
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": format_time(from_epoch(int(now) + wish.seconds))},
    }


def user_of_claims(store: RevisionStore, said: Fields, *, issuer: str, now: float) -> User | None:
    """Return the user of verified claims, or None if the token is not valid; ``now`` is in seconds since 1970."""
    if said.get("iss") != issuer:
        return None
    if not integer(said.get("nbf")) <= now + 1 or now >= integer(said.get("exp")):
        return None
    private = mapping(said.get("kubernetes.io"))
    namespace = text(private.get("namespace"))
    if not _is_there(store, _ACCOUNTS, namespace, mapping(private.get("serviceaccount"))):
        return None
    for kind, plural in _BOUND.items():
        bound = private.get(kind.lower())
        if bound is not None and not _is_there(store, plural, namespace, mapping(bound)):
            return None
    name = text(at(private, "serviceaccount", "name"))
    extra = {"authentication.kubernetes.io/credential-id": (f"JTI={text(said.get('jti'))}",)}
    return authenticated(
        account_name(namespace, name),
        *account_groups(namespace),
        uid=text(at(private, "serviceaccount", "uid")),
        extra=extra,
    )


def user_of_secret(store: RevisionStore, said: Fields, token: str) -> tuple[User, Resource] | None:
    """Return the account and Secret of a verified legacy token, or None if the token is not valid."""
    namespace, name = text(said.get(f"{_LEGACY}namespace")), text(said.get(f"{_LEGACY}service-account.name"))
    uid = text(said.get(f"{_LEGACY}service-account.uid"))
    subject = account_name(namespace, name)
    if said.get("iss") != _IN_SECRET or said.get("sub") != subject:
        return None
    secret = store.get("secrets", _key("secrets", namespace, text(said.get(f"{_LEGACY}secret.name"))))
    account = store.get(_ACCOUNTS, _key(_ACCOUNTS, namespace, name))
    if secret is None or account is None or account.uid != uid:
        return None
    marked = secret.deletion_timestamp is not None or account.deletion_timestamp is not None
    kept = text(at(secret.to_dict(), "data", "token"))
    if marked or secret.labels.get(_INVALID_SINCE) or kept != base64.b64encode(token.encode()).decode():
        return None
    return authenticated(subject, *account_groups(namespace), uid=uid), secret


def day_of_use(secret: Resource, *, now: float) -> str:
    """Return the new value of the ``LAST_USED`` label, or an empty string if no update is necessary."""
    today, tomorrow = (format_time(from_epoch(day)).partition("T")[0] for day in (now, now + _DAY))
    return "" if secret.labels.get(LAST_USED) in (today, tomorrow) else today


def _is_there(store: RevisionStore, plural: str, namespace: str, reference: Fields) -> bool:
    found = store.get(plural, _key(plural, namespace, text(reference.get("name"))))
    return found is not None and found.uid == reference.get("uid")


def _key(plural: str, namespace: str, name: str) -> str:
    return name if plural == "nodes" else f"{namespace}/{name}"


def _core_type(kind: str, plural: str) -> ResourceType[Resource]:
    return ResourceType[Resource]("", "v1", kind, plural)
