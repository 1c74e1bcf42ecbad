"""What goes on around the program that is soaked: plans are made, changed and deleted, and what came of it is checked.

Every plan has a name that never was there before: what is kept by name, for ever, shows.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, final

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import AlreadyExistsError, ConflictError, NotFoundError
from deltaloop.client import Client
from deltaloop.errors import DeltaloopError
from lab.soak.work import CRD, LABEL, PLAN, text_of

_PATIENCE = 60.0


@final
class Load:
    """The changes of one soak.

    Attributes:
        changes: How many there were.
    """

    def __init__(self, client: Client, *, plans: int, seed: int) -> None:
        """Begin with nothing.

        Args:
            client: Of an administrator.
            plans: How many plans there are at a time.
            seed: Of chance.
        """
        self.client = client
        self.changes = 0
        self._random = random.Random(seed)
        self._plans = plans
        self._live: dict[str, str] = {}
        self._made = 0
        self._namespaces: list[str] = []
        self._tokens = 0

    async def prepare(self) -> None:
        """Make the kind, the service account and the first plans."""
        await self.client.create(kinds.CUSTOM_RESOURCE_DEFINITION, CRD)
        await self.client.create("v1/ServiceAccount", {"metadata": {"name": "soak"}}, namespace="default")
        while not await self._is_served():  # noqa: ASYNC110 - the server may be another process
            await asyncio.sleep(0.05)
        await self.next_namespace()

    async def _is_served(self) -> bool:
        try:
            await self.client.list(PLAN)
        except NotFoundError:
            return False
        return True

    async def next_namespace(self) -> None:
        """Begin another namespace; those before the last one go once they have no plans."""
        name = f"soak-{self._made}"
        self._namespaces.append(name)
        await _persistently(lambda: self.client.create(kinds.NAMESPACE, {"metadata": {"name": name}}))
        for old in self._namespaces[:-1]:
            if old not in self._live.values():
                await _persistently(lambda old=old: self.client.delete(kinds.NAMESPACE, old))  # type: ignore[misc]
                self._namespaces.remove(old)

    async def change(self) -> None:
        """Change one thing: most often a plan's text; at times a plan is new and the oldest one goes."""
        self.changes += 1
        drawn = self._random.random()
        if drawn < 0.3 or len(self._live) < self._plans:
            await self._create()
            while len(self._live) > self._plans:
                await self._delete(next(iter(self._live)))
        elif drawn < 0.4:
            name = self._random.choice([*self._live])
            place = self._live[name]
            await _persistently(lambda: self.client.delete(kinds.CONFIG_MAP, f"{name}-0", namespace=place))
        else:
            name = self._random.choice([*self._live])
            patch, place = {"spec": {"text": self._text()}}, self._live[name]
            await _persistently(lambda: self.client.patch(PLAN, name, patch, namespace=place))

    async def _create(self) -> None:
        self._made += 1
        name, place = f"plan-{self._made}", self._namespaces[-1]
        plan = {"metadata": {"name": name}, "spec": {"text": self._text(), "maps": self._random.randrange(1, 4)}}
        await _persistently(lambda: self.client.create(PLAN, plan, namespace=place))
        self._live[name] = place

    async def _delete(self, name: str) -> None:
        place = self._live[name]
        await _persistently(lambda: self.client.delete(PLAN, name, namespace=place))
        del self._live[name]

    def _text(self) -> str:
        return "x" * self._random.randrange(1, 200)

    async def behind(self) -> list[str]:
        """Say what is not as it is wanted, as the server sees it."""
        try:
            plans = (await self.client.list(PLAN)).items
            maps = (await self.client.list(kinds.CONFIG_MAP, options=ListOptions(label_selector=LABEL))).items
        except DeltaloopError as error:
            return [f"the server: {type(error).__name__}"]
        wanted = {
            (plan.namespace, f"{plan.name}-{number}"): plan["spec"]["text"]
            for plan in plans
            for number in range(plan["spec"]["maps"])
        }
        checks = {
            "plans": sorted(plan.name for plan in plans) == sorted(self._live),
            "maps": {(each.namespace, each.name): text_of(each) for each in maps} == wanted,
            "status": all(_told(plan) == plan["spec"]["text"] for plan in plans),
            "sizes": all(each.annotations.get("size") == str(len(text_of(each))) for each in maps),
        }
        return [name for name, holds in checks.items() if not holds]

    async def new_token(self, *, seconds: float) -> str:
        """Make a token of the service account, and those before it worthless: their Secret is deleted."""
        self._tokens += 1
        secret: dict[str, Any] = {"metadata": {"name": f"credential-{self._tokens}"}}
        bound = await self.client.create(kinds.SECRET, secret, namespace="default")
        reference = {"apiVersion": "v1", "kind": "Secret", "name": bound.name, "uid": bound.metadata.uid}
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": max(600, int(seconds)), "boundObjectRef": reference},
        }
        answer = await self.client.create_subresource("v1/ServiceAccount", "soak", "token", asked, namespace="default")
        if self._tokens > 1:
            await self.client.delete(kinds.SECRET, f"credential-{self._tokens - 1}", namespace="default")
        token: str = answer["status"]["token"]
        return token


def _told(plan: Resource) -> object:
    status: dict[str, object] = plan.to_dict().get("status") or {}
    return status.get("text")


async def _persistently(send: Callable[[], Awaitable[object]]) -> None:
    """Send something although the server comes and goes; what an earlier try without an answer did is done."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _PATIENCE
    while True:
        try:
            await send()
        except (AlreadyExistsError, NotFoundError):
            return
        except (DeltaloopError, ConflictError):
            if loop.time() > end:
                raise
            await asyncio.sleep(0.1)
        else:
            return
