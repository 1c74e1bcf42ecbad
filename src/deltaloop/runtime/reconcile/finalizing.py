"""Reconciles of controllers that have a finalizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, final

from deltaloop.api.resource import Resource, untyped
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.runtime.controller import Cleanup, Controller, group_kind
from deltaloop.runtime.core.finalizing import FinalizerRun, FinalizerStep, finalizer_patch
from deltaloop.runtime.core.outcomes import NotAwaitedError, Raised, Returned
from deltaloop.runtime.errors import InvalidControllerError
from deltaloop.runtime.reconcile.context import Context
from deltaloop.runtime.reconcile.errors import InvalidDeadlineResultError
from deltaloop.runtime.reconcile.execution import Execution

_CONFLICT_TRIES: Final = 5


@final
class FinalizedRuns:
    """Run the reconciles of one controller that has a finalizer."""

    def __init__(
        self,
        controller: Controller,
        cleanup: Cleanup,
        kind: ResourceType[Any],
        *,
        wall_clock: Callable[[], datetime],
        ask_after: Callable[[str, float], object],
    ) -> None:
        """Create the runner; ``wall_clock`` returns aware times, and ``ask_after`` queues a key again after seconds."""
        self._controller = controller
        self._cleanup = cleanup
        self._kind = untyped(kind)
        self._wall_clock = wall_clock
        self._ask_after = ask_after

    async def run(self, execution: Execution) -> Returned | Raised:
        """Run the step that the object's state requires, and return how the reconcile or the cleanup ended."""
        context = execution.context
        run = FinalizerRun(
            self._controller.finalizer, deadline=self._cleanup.deadline, failed_before=context.attempts > 1
        )
        try:
            return await self._run(run, execution)
        finally:
            seconds = run.wait(self._now())
            if seconds is not None:
                self._ask_after(context.request.key, seconds)

    async def _run(self, run: FinalizerRun, execution: Execution) -> Returned | Raised:
        context = execution.context
        obj: Resource | None = None
        ended: Returned | Raised = Returned(None)
        step, conflicts = FinalizerStep.LOOK, 0
        while True:
            match step:
                case FinalizerStep.LOOK if self._kind.namespaced and not context.request.namespace:
                    step = FinalizerStep.RECONCILE  # the key names no object, for example the key of a timer
                case FinalizerStep.LOOK:
                    obj = await self._read(context, live=conflicts > 0)
                    step = run.seen(obj, self._now())
                case FinalizerStep.ADD | FinalizerStep.DROP:
                    assert obj is not None
                    try:
                        obj = await self._store(context, obj, step)
                        step = run.seen(obj, self._now())
                    except ConflictError:
                        conflicts, step = conflicts + 1, FinalizerStep.LOOK
                        if conflicts == _CONFLICT_TRIES:
                            raise
                case FinalizerStep.RECONCILE:
                    return await execution.call(self._controller.function)
                case FinalizerStep.CLEAN_UP:
                    context.cleanup = True
                    ended = await execution.call(self._cleanup.function)
                    step = run.tried(ended, self._now(), stopped=context.cancelled.is_set())
                case FinalizerStep.ASK:
                    context.cleanup = True
                    give_up = await self._gives_up(execution, ended)
                    step = run.answered(give_up=give_up, stopped=context.cancelled.is_set())
                case FinalizerStep.DONE:
                    return Returned(None)
                case FinalizerStep.AS_IT_ENDED:
                    return ended

    async def _read(self, context: Context, *, live: bool) -> Resource | None:
        """Read the object from the cache, or from the server after a conflict, which the cache cannot resolve."""
        request = context.request
        client = context.client.live if live else context.client
        return await client.find(self._kind, request.name, namespace=request.namespace or None)

    async def _store(self, context: Context, obj: Resource, step: FinalizerStep) -> Resource | None:
        patch = finalizer_patch(obj, self._controller.finalizer, step)
        try:
            return await context.client.patch(self._kind, obj.name, patch, namespace=obj.namespace or None)
        except NotFoundError:
            return None

    async def _gives_up(self, execution: Execution, ended: Returned | Raised) -> bool:
        assert self._cleanup.on_deadline is not None
        context, asked = execution.context, await execution.call(self._cleanup.on_deadline)
        if isinstance(asked, Raised):
            raise asked.error
        if asked.not_awaited:
            raise NotAwaitedError(asked.not_awaited)
        answer = asked.value
        if not isinstance(answer, bool):
            raise InvalidDeadlineResultError(type(answer).__name__)
        if answer:
            error = type(ended.error).__name__ if isinstance(ended, Raised) else ""
            message = "giving up cleanup after its deadline and removing the finalizer"
            context.logger.warning(message, extra={"finalizer": self._controller.finalizer, "error": error})
        return answer

    def _now(self) -> float:
        return self._wall_clock().timestamp()


def refuse_finalizers(controllers: Iterable[Controller]) -> None:
    """Reject finalizers without a cleanup, or shared by two controllers of a kind, by InvalidControllerError."""
    seen: dict[tuple[str, str, str], str] = {}
    for controller in controllers:
        if not controller.finalizer:
            continue
        name, finalizer = controller.name, controller.finalizer
        if controller.declared_cleanup is None:
            problem = f"{finalizer} requires a cleanup function. Decorate one with @{name}.cleanup."
            raise InvalidControllerError(name, problem, argument="finalizer")
        other = seen.setdefault((*group_kind(controller.resource), finalizer), name)
        if other != name:
            problem = f"must be unique for the kind, got {finalizer}, which controller {other!r} uses. Rename it."
            raise InvalidControllerError(name, problem, argument="finalizer")
