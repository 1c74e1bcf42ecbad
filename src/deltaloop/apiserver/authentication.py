"""Authentication by certificate or token, and impersonation.

    certificate of the server's CA           common name as user, organizations as groups
    the server's own token                   deltaloop:admin, in system:masters
    token in the token table                 user of the table
    token that this server signed            service account
    token in a Secret                        service account, if an accepted key signed it
    other token                              401
    no credentials                           system:anonymous

Source: apiserver pkg/authentication/request; pkg/endpoints/filters/impersonation.go.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, final
from urllib.parse import unquote

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import texts
from deltaloop.api.redaction import SecretText
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.access.service_tokens import user_of_claims, user_of_secret
from deltaloop.apiserver.core.storage.store import RevisionStore
from deltaloop.apiserver.core.user import Attributes, User, account_groups
from deltaloop.apiserver.core.wire.request_info import AUTHENTICATED, MASTERS, NOBODY, UNAUTHENTICATED, authenticated
from deltaloop.apiserver.tls import user_of_certificate
from deltaloop.apiserver.token_signer import TokenSigner

ADMIN: Final = authenticated("deltaloop:admin", MASTERS)
_GROUP: Final = "authentication.k8s.io"
_EXTRA: Final = "impersonate-extra-"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StaticUser:
    """User with a token that is valid while the server runs.

    Attributes:
        name: User name.
        token: Bearer token.
        uid: UID of the user. Can be empty.
        groups: Groups in addition to ``system:authenticated``.

    Raises:
        ValueError: If the name or the token is empty.
    """

    name: str
    token: SecretText = field(repr=False)
    uid: str = ""
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or not self.token:
            raise InvalidArgumentError("must have a name and a token.", argument="StaticUser")


def read_token_table(text: str, *, source: str) -> tuple[StaticUser, ...]:
    """Parse a token table with a line ``token,user,uid,"group1,group2"`` per user; UID and groups are optional.

    Raises:
        InvalidArgumentError: If a line is invalid. The message contains its number but not the token.

    Source: Kubernetes, ``--token-auth-file``.
    """
    import csv

    users: list[StaticUser] = []
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), start=1):
        if not row or row[0].startswith("#"):
            continue
        token, name, uid, groups = (*row, "", "", "")[:4]
        if not token or not name:
            raise InvalidArgumentError("must be token,user[,uid[,groups]].", argument=f"{source}, line {number}")
        listed = tuple(group.strip() for group in groups.split(",") if group.strip())
        users.append(StaticUser(name=name, token=SecretText(token), uid=uid, groups=listed))
    return tuple(users)


def _ignore(_: Resource) -> None:
    return


@final
class Authenticator:
    def __init__(
        self,
        token: SecretText | None,
        *,
        users: Iterable[StaticUser] = (),
        signer: TokenSigner | None = None,
        store: RevisionStore | None = None,
        epoch: Callable[[], float] = lambda: 0.0,
        secret_used: Callable[[Resource], None] = _ignore,
    ) -> None:
        """Configure the authenticator.

        Without the server's ``token`` it accepts all requests as administrator (plain HTTP). ``users`` is the token
        table, and ``secret_used`` is called with the Secret of a used token.
        """
        self._open = token is None
        # Indexed by digest, so that the time of a lookup does not depend on the token.
        self._users = {_digest(user.token.reveal()): _static(user) for user in users}
        if token is not None:
            self._users[_digest(token.reveal())] = ADMIN
        self._signer = signer
        self._store = store
        self._epoch = epoch
        self._secret_used = secret_used

    def user_of(self, authorization: str, certificate: Mapping[str, object] | None = None) -> User:
        """Return the user of a request, or raise UnauthorizedError for invalid credentials."""
        if self._open:
            return ADMIN
        named = user_of_certificate(certificate) if certificate else None
        if named is not None:
            return named
        if not authorization:
            return NOBODY
        scheme, _, given = authorization.partition(" ")
        user = self.user_of_token(given.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise status_errors.unauthorized()
        return user

    def user_of_token(self, token: str) -> User | None:
        """Return the user of a token for this server, or None if it is invalid."""
        found = self.review(token, (ISSUER,))
        return None if found is None else found[0]

    def review(self, token: str, audiences: tuple[str, ...]) -> tuple[User, tuple[str, ...]] | None:
        """Return the user and the matching audiences, or None."""
        user = self._users.get(_digest(token))
        meant: tuple[str, ...] = (ISSUER,)
        if user is None and self._signer is not None and self._store is not None:
            said = self._signer.read(token)
            if said is not None:
                user = user_of_claims(self._store, said, issuer=ISSUER, now=self._epoch())
                meant = texts(said.get("aud"))
                in_secret = user_of_secret(self._store, said, token) if user is None else None
                if in_secret is not None:
                    user, secret = in_secret
                    meant = (ISSUER,)
                    self._secret_used(secret)
        shared = tuple(item for item in audiences if item in meant)
        return (user, shared) if user is not None and shared else None


def impersonated(headers: Mapping[str, str], groups: tuple[str, ...]) -> User | None:
    """Return the user to impersonate, or raise BadRequestError for groups (``Impersonate-Group``) without a user."""
    name = headers.get("Impersonate-User", "")
    extra = _impersonated_extra(headers)
    if not name:
        if groups or extra or headers.get("Impersonate-Uid"):
            raise status_errors.bad_request("requested impersonation without impersonating a user name")
        return None
    uid = headers.get("Impersonate-Uid", "")
    if name == NOBODY.name:
        return User(name=name, uid=uid, groups=tuple(dict.fromkeys((*groups, UNAUTHENTICATED))), extra=extra)
    account = account_of(name)
    if not groups and account is not None:
        namespace, _ = account
        return authenticated(name, *account_groups(namespace), uid=uid, extra=extra)
    listed = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
    return User(name=name, uid=uid, groups=listed, extra=extra)


def rights_to_impersonate(user: User, other: User, groups: tuple[str, ...]) -> Iterator[Attributes]:
    right = partial(Attributes, user=user, verb="impersonate")
    account = account_of(other.name)
    if account is not None:
        yield right(resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield right(resource="users", name=other.name)
    for group in groups:
        yield right(resource="groups", name=group)
    for key, values in other.extra.items():
        for value in values:
            yield right(group=_GROUP, resource="userextras", subresource=key, name=value)
    if other.uid:
        yield right(group=_GROUP, resource="uids", name=other.uid)


def account_of(name: str) -> tuple[str, str] | None:
    """Return namespace and name of a service account user, or None for other users."""
    parts = name.split(":")
    if parts[:2] != ["system", "serviceaccount"] or len(parts) != 4 or not (parts[2] and parts[3]):
        return None
    return parts[2], parts[3]


def _impersonated_extra(headers: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        if header[0] in "iI" and header.lower().startswith(_EXTRA):
            key = unquote(header[len(_EXTRA) :].lower())
            found[key] = (*found.get(key, ()), value)
    return found


def is_own_host(host: str, *, listening_on: str) -> bool:
    """Return whether a ``Host`` header names this machine, as protection against DNS rebinding."""
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    return name == listening_on or is_loopback(name)


def is_foreign_page(origin: str | None, site: str | None, *, listening_on: str) -> bool:
    """Return whether a request comes from a web page that neither this server nor this machine served."""
    if site is not None and site.strip().lower() not in ("same-origin", "none"):
        return True
    return origin is not None and not is_own_host(origin.partition("://")[2], listening_on=listening_on)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _static(user: StaticUser) -> User:
    return authenticated(user.name, *user.groups, uid=user.uid)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
