"""Scenario for controllers without one, generated from manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.status import ForbiddenError, InvalidError, NotFoundError
from deltaloop.runtime import Controller
from deltaloop.simulation.core.made_scenarios import Sample, made_from
from deltaloop.simulation.simulator import Scenario
from deltaloop.testing.harness import Harness


def made_scenario(controllers: Sequence[Controller], objects: Sequence[Mapping[str, object]]) -> Scenario:
    """Return a scenario that creates samples, changes them field by field, deletes them, and creates them again.

    Samples that a finalizer keeps are not created again. The programs settle after each step. Changes that the server
    rejects are skipped.

    Raises:
        InvalidArgumentError: If there is no CRD, or no object can be generated for a CRD. The scenario raises it if the
            server rejects a generated object because of a rule.
    """
    plan = made_from(objects)

    async def scenario(world: Harness) -> None:
        await world.install(*plan.installed)
        await world.start(*controllers)
        for sample in plan.samples:
            await _create(world, sample)
        await world.settled()
        for sample in plan.samples:
            for edit in sample.edits:
                with suppress(InvalidError, ForbiddenError):
                    await world.client.patch(sample.kind, sample.name, edit.patch, namespace=sample.namespace)
                await world.settled()
        for sample in plan.samples:
            with suppress(NotFoundError):
                await world.client.delete(sample.kind, sample.name, namespace=sample.namespace)
            await world.settled()
        await world.settled()  # again, in case the user did not wait
        for sample in plan.samples:
            if await world.client.find(sample.kind, sample.name, namespace=sample.namespace) is None:
                await _create(world, sample)
        await world.settled()

    update_wrapper(scenario, controllers[0].function)
    return scenario


async def _create(world: Harness, sample: Sample) -> None:
    try:
        await world.client.create(sample.kind, sample.fields, namespace=sample.namespace)
    except InvalidError as refused:
        if not sample.made:
            raise
        raise InvalidArgumentError(
            f"cannot be generated, because the server rejects the smallest object: {refused}. Add a sample object.",
            argument=f"sample of {sample.kind}",
        ) from refused
