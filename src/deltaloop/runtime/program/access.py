"""Permissions of a whole program: its controllers, leader election, Events, metrics and webhooks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from msgspec import Struct

from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.kinds import CONFIG_MAP, EVENT, EVENTS_V1_EVENT, LEASE, NAMESPACE, SECRET, parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import AlreadyExistsError, ApiError
from deltaloop.client.client import Client
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.impersonation import Impersonation
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.core.access import (
    READ_VERBS,
    AccessRule,
    Permission,
    PreflightError,
    is_allowed,
    review,
    roles,
    rules_for,
    rules_of_access,
)
from deltaloop.runtime.program.wiring import kinds_named, wires_of

if TYPE_CHECKING:
    from deltaloop.webhooks.core.certificates.targets import TargetKind, WebhookTarget

_GROUP: Final = "rbac.authorization.k8s.io"
_NOBODYS: Final = AccessRule("deltaloop.dev", "nothings", "get", namespaced=False)
"""Rule that no program's role grants. An account that is allowed to do this is allowed to do everything."""
_logger: Final = logging.getLogger("deltaloop.runtime")

SELF_SUBJECT_ACCESS_REVIEW: Final = ResourceType[Resource](
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
_AT_ONCE: Final = 4


async def check_access(client: Client, rules: Iterable[AccessRule]) -> None:
    """Check each rule once with the server, or log a warning if it does not support access reviews."""
    wanted = list(dict.fromkeys(rules))
    limit = asyncio.Semaphore(_AT_ONCE)
    unanswered: list[ApiError] = []

    async def is_missing(rule: AccessRule) -> bool:
        async with limit:
            if unanswered:
                return False
            try:
                answer = await client.create(SELF_SUBJECT_ACCESS_REVIEW, review(rule))
            except ApiError as error:
                unanswered.append(error)
                return False
        return not is_allowed(answer.to_dict())

    first = [await is_missing(rule) for rule in wanted[:1]]  # alone, in case the server answers none
    others = await asyncio.gather(*map(is_missing, wanted[1:]), return_exceptions=True)
    answers = [*first, *others]
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    if unanswered:
        # The review is not served (404, 405), not allowed (403), or broken. The caches will report missing permissions.
        status = unanswered[0].status
        _logger.warning(
            "cannot check the permissions of this account, continuing",
            extra={"code": status.code, "reason": status.reason},
        )
    refused = [rule for rule, answer in zip(wanted, answers, strict=True) if answer]
    if refused:
        raise PreflightError(refused)


@final
class Program(Struct, frozen=True, kw_only=True):
    """Permissions that a program needs in addition to those of its controllers."""

    namespace: str | None = None
    lease_namespace: str | None = None
    event_api: str = EVENT.api_version
    shards: bool = False
    token_review: bool = False
    certificates: tuple[Permission, ...] = ()
    reads: tuple[ResourceType[Any], ...] = ()

    def rules(self, *, cluster_kinds: bool) -> list[AccessRule]:
        """Return the rules that the program needs; Events of ``cluster_kinds`` are in ``default``."""
        places = {"default", self.namespace} if self.namespace and cluster_kinds else {self.namespace or ""}
        needed = event_access(self.event_api, namespaces=tuple(sorted(places)))
        needed += program_access(
            lease_namespace=self.lease_namespace, shards=self.shards, token_review=self.token_review
        )
        needed += self.certificates
        rules = [rule for access in needed for rule in rules_of_access(access, namespace=None)]
        return rules + [rule for kind in self.reads for rule in rules_for(kind, READ_VERBS, namespace=self.namespace)]


def rules_of(controllers: Sequence[Controller], *, program: Program) -> tuple[list[AccessRule], list[str]]:
    """Return the rules of controllers and program, and the kind names whose plural was guessed."""
    known: dict[str, ResourceType[Any]] = {}
    guessed: list[str] = []
    for name in sorted({name for controller in controllers for name in kinds_named(controller, writes=True)}):
        try:
            known[name] = parse_resource_type(name)
        except UnknownResourceError:
            known[name] = guess(name)
            guessed.append(name)
    plans = [wires_of(controller, known) for controller in controllers]
    rules = [rule for plan in plans for rule in plan.rules(program.namespace)]
    rules += [rule for plan in plans for rule in plan.implied_rules(program.namespace)]
    return rules + program.rules(cluster_kinds=any(not plan.kind.namespaced for plan in plans)), guessed


def guess(name: str) -> ResourceType[Any]:
    """Guess a resource type from a name such as ``example.com/v1/Widget``, or raise UnknownResourceError."""
    api_version, _, kind = name.rpartition("/")
    if not api_version or not kind:
        raise UnknownResourceError(f"kind must be GROUP/VERSION/Kind without a server, got {name!r}.")
    lower = kind.lower()
    if lower.endswith("s"):
        plural = f"{lower}es"
    elif lower.endswith("y"):
        plural = f"{lower[:-1]}ies"
    else:
        plural = f"{lower}s"
    return ResourceType[Resource].untyped(api_version, kind, plural)


def program_access(*, lease_namespace: str | None, token_review: bool, shards: bool = False) -> tuple[Permission, ...]:
    """Return the permissions for leader election or shards, and token reviews; None means neither of the first."""
    needed: list[Permission] = []
    if lease_namespace is not None and shards:
        verbs = (*READ_VERBS, "create", "update", "patch")
        needed.append(Permission(LEASE, verbs=(*verbs, "delete"), namespace=lease_namespace))
        needed.append(Permission(CONFIG_MAP, verbs=verbs, namespace=lease_namespace))
    elif lease_namespace is not None:
        needed.append(Permission(LEASE, verbs=("get", "create", "update"), namespace=lease_namespace))
    if token_review:
        from deltaloop.runtime.program.token_reviews import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW

        needed += [Permission(kind, verbs=("create",)) for kind in (TOKEN_REVIEW, SUBJECT_ACCESS_REVIEW)]
    return tuple(needed)


def event_access(api: str, *, namespaces: tuple[str, ...] = ("",)) -> tuple[Permission, ...]:
    """Return the permissions for recording Events; an empty namespace means all."""
    kinds = (EVENT,) if api == EVENT.api_version else (EVENT, EVENTS_V1_EVENT)
    return tuple(
        Permission(kind, verbs=("create", "patch"), namespace=namespace) for kind in kinds for namespace in namespaces
    )


def certificate_access(*, namespace: str, secret: str, targets: Iterable[WebhookTarget]) -> tuple[Permission, ...]:
    """Return the permissions for managed webhook certificates: one existing Secret, and the configurations by name."""
    from deltaloop.webhooks.certificates.targets import TARGET_KINDS

    needed = [Permission(SECRET, verbs=(*READ_VERBS, "update"), namespace=namespace, names=(secret,))]
    names: dict[TargetKind, list[str]] = {}
    for target in targets:
        names.setdefault(target.kind, []).append(target.name)
    needed += [
        Permission(TARGET_KINDS[kind], verbs=(*READ_VERBS, "patch"), names=tuple(named))
        for kind, named in names.items()
    ]
    return tuple(needed)


async def restricted(client: Client, rules: Iterable[AccessRule], *, name: str) -> ClientConfig:
    """Grant rules to a separate user, whom the client impersonates, and return its configuration."""
    user = _user(name)
    subjects = [{"kind": "User", "name": user, "apiGroup": _GROUP}]
    for role in roles(rules, name=user):
        namespace = role["metadata"].get("namespace")
        if namespace is not None:
            await _created(client, {"metadata": {"name": namespace}})
        kind = str(role["kind"])
        reference = {"apiGroup": _GROUP, "kind": kind, "name": user}
        binding = {"metadata": {"name": user}, "subjects": subjects, "roleRef": reference}
        await client.apply(_of_rbac(kind), role, namespace=namespace, force=True)
        await client.apply(_of_rbac(f"{kind}Binding"), binding, namespace=namespace, force=True)
    config = client.config.replace(impersonate=Impersonation(user=user))
    async with Client(config, options=client.options) as as_user:
        answer = await as_user.create(SELF_SUBJECT_ACCESS_REVIEW, review(_NOBODYS))
    if is_allowed(answer.to_dict()):
        raise InvalidArgumentError(
            'must be "RBAC", without insecure_http, because this server would ignore roles. In tests, set it in the '
            "fixture deltaloop_server_options.",
            argument="ServerOptions.authorization_mode",
        )
    return config


def _user(name: str) -> str:
    return f"deltaloop:{name}"


def granting(rules: Iterable[AccessRule], *, name: str) -> list[tuple[ResourceType[Resource], str, str]]:
    made: list[tuple[ResourceType[Resource], str, str]] = []
    for role in roles(rules, name=_user(name)):
        namespace = str(role["metadata"].get("namespace", ""))
        made += [(_of_rbac(f"{role['kind']}{suffix}"), _user(name), namespace) for suffix in ("", "Binding")]
    return made


def _of_rbac(kind: str) -> ResourceType[Resource]:
    return ResourceType[Resource](_GROUP, "v1", kind, f"{kind.lower()}s", namespaced=not kind.startswith("Cluster"))


async def _created(client: Client, namespace: Mapping[str, Any]) -> None:
    try:
        await client.create(NAMESPACE, namespace)
    except AlreadyExistsError:
        return
