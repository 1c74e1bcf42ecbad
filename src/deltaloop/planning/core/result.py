"""Result of a plan; ``deltaloop plan --output json`` prints it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

import msgspec

SCHEMA: Final = "deltaloop.dev/plan/v1"

Action: TypeAlias = Literal["create", "update", "delete", "replace"]
Reason: TypeAlias = Literal[
    "hot-loop", "not-at-rest", "failed", "rejected", "network", "does-not-fit", "dry-run", "server-change"
]


class FieldChange(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Changed field of an object.

    Attributes:
        path: Path of the field, for example ``spec.template.spec.containers[name=web].image``.
        before: Redacted value before; null if it did not exist.
        after: Redacted value afterwards; null if it does not exist.
        redacted: True if the difference is in redacted parts.
    """

    path: str
    before: object = None
    after: object = None
    redacted: bool = False


class ObjectChange(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Object that is created, updated, deleted, or deleted and created again.

    Attributes:
        action: ``create``, ``update``, ``delete`` or ``replace``.
        kind: Kind with its API version, for example ``apps/v1/Deployment``.
        key: ``namespace/name``, or the name.
        controller: Controller that changed the object first; empty for a consequence in the cluster.
        cause: Reconcile with its trigger, or the component of the cluster.
        fields: Changed fields of an update.
    """

    action: Action
    kind: str
    key: str
    controller: str = ""
    cause: str = ""
    fields: tuple[FieldChange, ...] = ()


class Restart(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Workload with a changed Pod template.

    Attributes:
        kind: Kind with its API version, for example ``apps/v1/StatefulSet``.
        key: ``namespace/name``.
        pods: Number of Pods that it runs, before the change.
    """

    kind: str
    key: str
    pods: int = 0


class PlanProblem(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Reason for which the plan is incomplete, or a finding about stored objects.

    Attributes:
        reason: ``hot-loop``, ``not-at-rest``, ``failed``, ``rejected`` (by a policy, a webhook, or validation),
            ``network`` (an attempt that was denied), ``does-not-fit`` (a stored object that a changed CRD rejects),
            ``dry-run`` (a write that the real server rejects), or ``server-change`` (the real server changes a write).
        subject: Controller and key, object, or address.
        message: Redacted description with a remedy.
        place: File and line of the program, if they are known.
    """

    reason: Reason
    subject: str
    message: str
    place: str = ""

    @property
    def fails(self) -> bool:
        """True if the plan fails because of the problem."""
        return self.reason not in ("does-not-fit", "server-change")


class Numbers(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Numbers of a plan.

    Attributes:
        objects: Objects of the snapshot.
        reconciles: Reconciles that ended.
        retries: Reconciles that failed and were tried again.
        writes: Writes of objects that the program sent, including writes without a change.
        events: Events that the program recorded.
        seconds: Virtual seconds until the program rested.
    """

    objects: int = 0
    reconciles: int = 0
    retries: int = 0
    writes: int = 0
    events: int = 0
    seconds: float = 0.0


@final
class Plan(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Changes that a program would make.

    Attributes:
        schema: Version of this format.
        changes: Changed objects, sorted by kind and key.
        restarts: Workloads that would restart their Pods.
        problems: Problems, of which most fail the plan.
        webhooks_not_asked: Webhooks of the cluster that would see the writes.
        numbers: Numbers of objects, reconciles, writes and so on.
        against: Other version of the program if the plan contains only differences; otherwise empty.
    """

    schema: str = SCHEMA
    changes: tuple[ObjectChange, ...] = ()
    restarts: tuple[Restart, ...] = ()
    problems: tuple[PlanProblem, ...] = ()
    webhooks_not_asked: tuple[str, ...] = ()
    numbers: Numbers = Numbers()
    against: str = ""

    @property
    def failed(self) -> bool:
        """True if the plan is incomplete because of a problem."""
        return any(problem.fails for problem in self.problems)

    @property
    def exit_code(self) -> int:
        """1 after a failure, 2 with changes, otherwise 0."""
        return 1 if self.failed else 2 if self.changes else 0

    def __str__(self) -> str:
        from deltaloop.planning.core.report import plan_text

        return plan_text(self)
