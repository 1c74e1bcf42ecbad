"""Scenario for controllers that have none, made from manifests."""

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
    """Return a scenario in which samples are created, changed field by field, deleted, and created once more.

    What is deleted takes with it whatever was left over of its life, and what the second one leaves over stays. One
    that does not go, as its finalizer waits for something, is not created again. The programs come to rest after each
    step. A change that the server refuses (a rule, a field that must not change) is left out.

    Args:
        controllers: What the program runs; one at least.
        objects: What manifests hold: definitions of the kinds, samples of them, and what else has to be there. A kind
            without a sample has one made from its schema.

    Raises:
        InvalidArgumentError: If there is no definition, or no object can be made of one; from the scenario, if one was
            made and the server refuses it, by a rule that no type says.
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
        await world.settled()  # once more, if the user did not wait
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
            f"the smallest {sample.kind} that its schema allows is refused, and no manifest has another one: "
            f"{refused}; give a sample of the kind"
        ) from refused
