"""Steps of the demo. Each step acts on the cluster and waits for the expected result."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, final

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.cli.demo.replicas import DemoReplica
from deltaloop.cli.demo.world import FOO, StepFailedError, World

NAMESPACE = "default"


@dataclass(slots=True)
class StepResult:
    name: str
    ok: bool = False
    seconds: float = 0.0
    detail: str = ""


@dataclass(slots=True)
class Summary:
    """Result of the demo, which ``--output json`` prints.

    Attributes:
        seconds: Duration of the demo in seconds.
        failed: Description of the failure, or an empty string.
        failover_seconds: Seconds from the kill of the leader until the standby held the lease.
        triggers: Number of triggers by source, verb and kind.
        kubeconfig: Path of the kubeconfig while the demo is kept running.
    """

    ok: bool = False
    seconds: float = 0.0
    failed: str = ""
    failover_seconds: float | None = None
    reconciles: int = 0
    triggers: dict[str, int] = field(default_factory=dict[str, int])
    steps: list[StepResult] = field(default_factory=list[StepResult])
    kubeconfig: str = ""


def foo(name: str, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": FOO.api_version,
        "kind": FOO.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"deploymentName": name, "replicas": replicas},
    }


@final
class Story:
    """Steps of the demo. ``say`` displays an action, and ``start_replica`` starts a controller process."""

    def __init__(
        self,
        world: World,
        *,
        say: Callable[[str], None],
        start_replica: Callable[[str], Awaitable[DemoReplica]],
    ) -> None:
        self.world = world
        self.summary: Summary = Summary()
        self._say = say
        self._start_replica = start_replica

    @asynccontextmanager
    async def step(self, name: str) -> AsyncGenerator[StepResult, None]:
        """Record the duration and the result of a step."""
        result = StepResult(name)
        self.summary.steps.append(result)
        begun = monotonic()
        try:
            yield result
            result.ok = True
        except StepFailedError as error:
            result.detail = str(error)
            raise
        finally:
            result.seconds = round(monotonic() - begun, 3)

    async def tell(self) -> None:
        await self._two_replicas()
        await self._foos_become_deployments()
        await self._deleted_deployment_comes_back()
        await self._changed_foo_changes_its_deployment()
        await self._standby_takes_over()
        await self._deleted_foo_takes_its_deployment_along()

    async def _two_replicas(self) -> None:
        world = self.world
        async with self.step("one replica leads, and the other is a standby with synced caches") as result:
            for number in (1, 2):
                identity = f"replica-{number}"
                world.replicas[identity] = await self._start_replica(identity)
            leader = await world.until("a replica holds the lease", lambda: world.leader)
            for replica in world.replicas.values():
                await world.until(f"{replica.identity} has synced caches", partial(replica.logged, "caches are synced"))
            await world.until(f"{leader} logs that it leads", lambda: world.replicas[leader].logged("leading"))
            result.detail = f"{leader} leads"

    async def _foos_become_deployments(self) -> None:
        world, wanted = self.world, {"alpha": 1, "beta": 2, "gamma": 3}
        async with self.step("the controller creates a Deployment, a status and an Event for each Foo") as result:
            for name, replicas in wanted.items():
                self._say(f"create Foo {name} with {replicas} replicas")
                await world.client.create(FOO, foo(name, replicas))
            for name, replicas in wanted.items():
                await self._in_place(name, replicas)
            result.detail = f"{len(wanted)} Deployments"

    async def _deleted_deployment_comes_back(self) -> None:
        world = self.world
        async with self.step("the controller recreates a Deployment that another client deleted") as result:
            result.detail = await self._delete_and_wait("beta")
            leader = world.replicas[world.leader]
            await world.until(
                "the leader logs a reconcile of beta that the deletion triggered",
                lambda: any(
                    line.message == "reconciling"
                    and line.fields.get("key") == f"{NAMESPACE}/beta"
                    and any("owner delete" in str(trigger) for trigger in line.fields.get("triggers", ()))
                    for line in leader.lines
                ),
            )

    async def _changed_foo_changes_its_deployment(self) -> None:
        async with self.step("a change of a Foo updates its Deployment") as result:
            self._say("set spec.replicas of Foo gamma to 5")
            await self.world.client.patch(FOO, "gamma", {"spec": {"replicas": 5}}, namespace=NAMESPACE)
            await self._in_place("gamma", 5)
            result.detail = "3 replicas became 5"

    async def _standby_takes_over(self) -> None:
        world = self.world
        async with self.step("the standby takes over after the leader is killed") as result:
            old = world.leader
            self._say(f"kill -9 {old} (process {world.replicas[old].process.pid})")
            killed_at = monotonic()
            await world.replicas.pop(old).kill()
            new = await world.until(
                "the standby holds the lease", lambda: world.leader if world.leader not in ("", old) else ""
            )
            self.summary.failover_seconds = round(monotonic() - killed_at, 3)
            await world.until(f"{new} logs that it leads", lambda: world.replicas[new].logged("leading"))
            self._say("create Foo delta with 4 replicas")
            await world.client.create(FOO, foo("delta", 4))
            await self._in_place("delta", 4)
            await self._delete_and_wait("alpha")
            result.detail = f"{new} leads after {self.summary.failover_seconds:.1f} s"

    async def _deleted_foo_takes_its_deployment_along(self) -> None:
        world = self.world
        async with self.step("deleting a Foo also deletes its Deployment"):
            self._say("delete Foo beta")
            await world.client.delete(FOO, "beta", namespace=NAMESPACE)
            await world.until(
                "Foo beta and its Deployment are deleted",
                lambda: (
                    world.foos.find(f"{NAMESPACE}/beta") is None and world.deployments.find(f"{NAMESPACE}/beta") is None
                ),
            )

    async def stop_replicas(self) -> None:
        """Run the last step, which stops the replicas gracefully and checks that the lease is released."""
        world = self.world
        async with self.step("the replicas stop on request and release the lease") as result:
            self._say("SIGTERM to " + ", ".join(world.replicas))
            codes = {replica.identity: await replica.stop() for replica in world.replicas.values()}
            if any(codes.values()):
                raise StepFailedError("all replicas end with exit code 0", f"exit codes {codes}")
            await world.until("the lease has no holder", lambda: world.leader == "")
            result.detail = f"{len(codes)} stopped"

    async def _in_place(self, name: str, replicas: int) -> Resource:
        """Wait until a Foo has a Deployment with ``replicas`` replicas, a matching status, and an event."""
        world, key = self.world, f"{NAMESPACE}/{name}"

        def deployment() -> Resource | None:
            found = world.deployment_of(key)
            return found if found is not None and found["spec"].get("replicas") == replicas else None

        def has_status() -> bool:
            found = world.foos.find(key)
            status = found.get("status") if found is not None else None
            return status is not None and status.get("replicas") == replicas

        found = await world.until(f"Deployment {name} has {replicas} replicas", deployment)
        await world.until(f"the status of Foo {name} shows {replicas} replicas", has_status)
        await world.until(f"an Event for Foo {name} is recorded", lambda: world.events_about(key))
        return found

    async def _delete_and_wait(self, name: str) -> str:
        """Delete the Deployment of a Foo, and wait for its replacement."""
        world, key = self.world, f"{NAMESPACE}/{name}"
        before = await world.until(f"Deployment {name} exists", lambda: world.deployment_of(key))
        self._say(f"delete Deployment {name}")
        await world.client.delete(kinds.DEPLOYMENT, name, namespace=NAMESPACE)
        begun = monotonic()

        def replaced() -> Resource | None:
            found = world.deployment_of(key)
            return found if found is not None and found.uid != before.uid else None

        await world.until(f"Deployment {name} is recreated", replaced)
        return f"{name} is recreated after {(monotonic() - begun) * 1000:.0f} ms"
