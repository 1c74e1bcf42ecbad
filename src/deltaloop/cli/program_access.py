"""What the program around controllers does itself: asked about by the preflight of ``run``, printed by ``rbac``."""

from __future__ import annotations

from deltaloop.api.kinds import EVENT, EVENTS_V1_EVENT, LEASE
from deltaloop.events import EventApi
from deltaloop.runtime import Access
from deltaloop.runtime.token_reviews import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW


def program_access(*, lease_namespace: str | None, token_review: bool) -> tuple[Access, ...]:
    """Return what a program cannot do without.

    Args:
        lease_namespace: Where the Lease of leader election is; None without one.
        token_review: Whether the API server is asked who may get the metrics.
    """
    needed: list[Access] = []
    if lease_namespace is not None:
        needed.append(Access(LEASE, verbs=("get", "create", "update"), namespace=lease_namespace))
    if token_review:
        needed += [Access(kind, verbs=("create",)) for kind in (TOKEN_REVIEW, SUBJECT_ACCESS_REVIEW)]
    return tuple(needed)


def event_access(api: EventApi, *, namespaces: tuple[str, ...] = ("",)) -> tuple[Access, ...]:
    """Return what recording Events takes.

    Args:
        api: What they are written in. Where ``events.k8s.io`` is not served, the recorder writes ``v1``.
        namespaces: Where the objects are that they are about; empty for all.
    """
    kinds = (EVENT,) if api is EventApi.CORE_V1 else (EVENT, EVENTS_V1_EVENT)
    return tuple(
        Access(kind, verbs=("create", "patch"), namespace=namespace) for kind in kinds for namespace in namespaces
    )
