"""The program that is soaked: three controllers with finalizers, owned objects, status, Events, timers and threads.

The same runs for two hours of real time and for a year of virtual time. ``Work`` says what it has done, and may be
given a leak on purpose: a soak that cannot see one is worth nothing.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final, final

from deltaloop.api import kinds
from deltaloop.api.redaction import SecretText
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.events import CorrelatorOptions, EventRecorderOptions
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Controller, Request, Result, controller, set_controller_reference
from deltaloop.sources import Periodic

LABEL: Final = "soak.deltaloop.dev/plan"
FINALIZER: Final = "soak.deltaloop.dev/tidy"
PLAN: Final[ResourceType[Resource]] = ResourceType("soak.deltaloop.dev", "v1", "Plan", "plans")
CRD: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "plans.soak.deltaloop.dev"},
    "spec": {
        "group": "soak.deltaloop.dev",
        "scope": "Namespaced",
        "names": {"kind": "Plan", "plural": "plans", "singular": "plan", "listKind": "PlanList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"text": {"type": "string"}, "maps": {"type": "integer"}},
                            },
                            "status": {
                                "type": "object",
                                "properties": {"text": {"type": "string"}, "maps": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}

EVENTS: Final = EventRecorderOptions(correlation=CorrelatorOptions(cache_size=256))
"""What is remembered of objects that had Events is full after some minutes; by default it takes 4096 objects."""

LEAKS: Final = ("tasks", "handlers", "memory", "threads")
"""What may be left behind on purpose: a task per reconcile, a registration, bytes, a thread."""


@final
class Work:
    """What the controllers of one process do and have done.

    Attributes:
        reconciles: How many ran.
        failures: How many of them failed on purpose.
        leak: What they leave behind on purpose.
        kept: What was left behind.
    """

    def __init__(self, *, seed: int = 1, failing: float = 0.05, period: float = 10.0, leak: str = "") -> None:
        """Make it.

        Args:
            seed: Of the failures.
            failing: The share of reconciles that fail.
            period: Seconds between two looks at everything, and until a plan is looked at again.
            leak: One of ``LEAKS``, or nothing.
        """
        if leak and leak not in LEAKS:
            raise ValueError(f"leak is {leak!r}; known are {', '.join(LEAKS)}")
        self.reconciles = 0
        self.failures = 0
        self.leak = leak
        self.kept: list[object] = []
        self._random = random.Random(seed)
        self._failing = failing
        self._period = period

    def controllers(self) -> list[Controller]:
        """Make the controllers of one manager."""

        @controller(PLAN, owns=[kinds.CONFIG_MAP], writes=[kinds.CONFIG_MAP, PLAN], workers=4, name="plans")
        async def plans(request: Request, ctx: Context) -> Result | None:
            self._began()
            plan = await ctx.client.find(PLAN, request.name, namespace=request.namespace)
            if plan is None:
                return None
            if plan.metadata.deletion_timestamp:
                await ctx.client.remove_finalizer(PLAN, plan, FINALIZER)
                return None
            plan = await ctx.client.add_finalizer(PLAN, plan, FINALIZER)
            self._may_fail("before the writes")
            await self._bring_about(plan, ctx)
            return Result(requeue_after=self._period)

        @controller(
            kinds.CONFIG_MAP,
            name="sizes",
            workers=2,
            predicates=[Where(lambda obj: LABEL in obj.labels)],
            writes=[kinds.CONFIG_MAP],
        )
        def sizes(request: Request, ctx: Context) -> None:  # a plain function: it runs in a thread
            self._began()
            found = ctx.wait(ctx.client.find(kinds.CONFIG_MAP, request.name, namespace=request.namespace))
            if found is None or found.metadata.deletion_timestamp:
                return
            size = str(len(text_of(found)))
            if found.annotations.get("size") != size:
                patch = {"metadata": {"annotations": {"size": size}}}
                ctx.wait(ctx.client.patch(kinds.CONFIG_MAP, request.name, patch, namespace=request.namespace))
            self._may_fail("after the write")

        @controller(
            kinds.NAMESPACE,
            name="looks",
            reads=[PLAN],
            sources=[Periodic(self._period, [Request("", "all")])],
        )
        async def looks(request: Request, ctx: Context) -> None:
            self._began()
            if request.name == "all":
                await ctx.client.list(PLAN)

        return [plans, sizes, looks]

    async def _bring_about(self, plan: Resource, ctx: Context) -> None:
        text, wanted = plan["spec"].get("text", ""), plan["spec"].get("maps", 1)

        def change(fields: dict[str, object]) -> None:
            set_controller_reference(fields, plan, PLAN)
            metadata = fields["metadata"]
            assert isinstance(metadata, dict)
            metadata["labels"] = {LABEL: plan.name}
            fields["data"] = {"text": text}

        for number in range(wanted):
            name = f"{plan.name}-{number}"
            await ctx.client.create_or_update(kinds.CONFIG_MAP, name, change, namespace=plan.namespace)
        status = {"text": text, "maps": wanted}
        if plan.get("status") != status:
            await ctx.client.patch(PLAN, plan.name, {"status": status}, namespace=plan.namespace, subresource="status")
            ctx.recorder.event(plan, "Normal", "Done", f"{wanted} maps say {text}")

    def _began(self) -> None:
        self.reconciles += 1
        if self.leak == "tasks":
            loop = asyncio.get_running_loop() if _on_loop() else None
            if loop is not None:
                self.kept.append(loop.create_task(asyncio.Event().wait()))
        elif self.leak == "memory":
            self.kept.append(SecretText("x" * 2000 + str(self.reconciles)))

    def _may_fail(self, when: str) -> None:
        if self._random.random() < self._failing:
            self.failures += 1
            raise OSError(f"a failure {when}")


def text_of(config_map: Resource) -> str:
    """Return what a ConfigMap says; empty if it has no data."""
    data: dict[str, str] = config_map.to_dict().get("data") or {}
    return data.get("text", "")


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
