"""Controller that creates and updates one Deployment for each Foo.

It is the sample controller of Kubernetes, written with deltaloop. Two informers fill one work queue. While this replica
leads, workers take keys from the queue and compare the desired with the observed state of each Foo.

You can run it on any cluster, or with `deltaloop apiserver --controllers gc`:

    python controller.py --kubeconfig FILE
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import deltaloop as dl

logger: logging.Logger = logging.getLogger("sample_controller")

FOO = dl.ResourceType[dl.Resource]("samples.deltaloop.dev", "v1alpha1", "Foo", "foos")
CRD_FILE = Path(__file__).with_name("crd.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one replica.

    Attributes:
        kubeconfig: Path of a kubeconfig. None means the search order of kubectl, then the service account.
        identity: Unique name of this replica.
        namespace: Namespace of the lease.
        workers: Number of concurrent reconciles.
        lease: Durations of the leader election.
    """

    kubeconfig: str | None = None
    identity: str = ""
    namespace: str = "default"
    workers: int = 2
    lease: dl.LeaderElectionConfig = field(default_factory=dl.LeaderElectionConfig)


class Controller:
    """Reconciler of Foos. It reads from caches, and writes with the client of its term."""

    def __init__(
        self, foos: dl.Lister[dl.Resource], deployments: dl.Lister[dl.Resource], recorder: dl.EventRecorder
    ) -> None:
        """Create the controller with its listers and recorder."""
        self._foos = foos
        self._deployments = deployments
        self._recorder = recorder

    async def work(self, queue: dl.RateLimitingQueue[str], client: dl.Client) -> None:
        """Process keys until the queue is shut down. A failed reconcile is logged and retried later."""
        async for work in queue:
            async with work:
                logger.info("reconciling", extra={"key": work.key, "triggers": [str(t) for t in work.triggers]})
                await self.reconcile(work.key, client)

    async def reconcile(self, key: str, client: dl.Client) -> None:
        """Create or update the Deployment of one Foo, and update its status."""
        foo = self._foos.find(key)
        if foo is None:
            logger.info("foo is deleted, its deployment is garbage collected", extra={"key": key})
            return
        name = foo["spec"]["deploymentName"]
        deployment = self._deployments.find(f"{foo.namespace}/{name}")
        if deployment is None:
            deployment = await client.create(dl.kinds.DEPLOYMENT, desired_deployment(foo))
            logger.info("created deployment", extra={"key": key, "deployment": name})
        elif not is_controlled_by(deployment, foo):
            self._recorder.event(foo, "Warning", "ErrResourceExists", f"Deployment {name} is not managed by Foo")
            raise dl.DeltaloopError(f"deployment {name!r} exists and is not managed by Foo {key!r}")
        elif (deployment["spec"].get("replicas"), name) != (desired_replicas(foo), deployment.name):
            changed = deployment.edit()
            changed["spec"]["replicas"] = desired_replicas(foo)
            deployment = await client.update(dl.kinds.DEPLOYMENT, changed)
            logger.info("updated deployment", extra={"key": key, "deployment": name})
        await self._update_status(foo, deployment, client)
        self._recorder.event(foo, "Normal", "Synced", "Foo synced successfully")

    async def _update_status(self, foo: dl.Resource, deployment: dl.Resource, client: dl.Client) -> None:
        observed: Mapping[str, Any] = deployment.get("status", {})
        status: dict[str, Any] = {
            "observedGeneration": foo.generation,
            "replicas": desired_replicas(foo),
            "availableReplicas": observed.get("availableReplicas", 0),
            "message": f"deployment {deployment.name} is up to date",
        }
        if foo.get("status") == status:
            return
        # No other program writes this status, so a patch without resourceVersion is safe.
        await client.patch(FOO, foo.name, {"status": status}, namespace=foo.namespace, subresource="status")
        logger.info("updated status", extra={"key": foo.key})


def desired_replicas(foo: dl.Resource) -> int:
    """Return the desired number of replicas. The default is 1."""
    return int(foo["spec"].get("replicas", 1))


def is_controlled_by(obj: dl.Resource, owner: dl.Resource) -> bool:
    """Return whether ``owner`` is the controlling owner of ``obj``."""
    return obj.controller_owner is not None and obj.controller_owner.uid == owner.uid


def desired_deployment(foo: dl.Resource) -> Mapping[str, Any]:
    """Return the desired Deployment of a Foo."""
    labels = {"app": "nginx", "controller": foo.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": foo["spec"]["deploymentName"],
            "namespace": foo.namespace,
            "ownerReferences": [dl.api.controller_reference(foo, FOO)],
        },
        "spec": {
            "replicas": desired_replicas(foo),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    }


async def ensure_crd(client: dl.Client) -> None:
    """Create the CRD unless it exists, and wait until Foos can be listed."""
    crd = dl.read_yaml(CRD_FILE.read_text(), source=CRD_FILE.name)
    with contextlib.suppress(dl.AlreadyExistsError):
        await client.create(dl.kinds.CUSTOM_RESOURCE_DEFINITION, crd)
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(FOO, options=dl.ListOptions(limit=1))
            except dl.NotFoundError:
                await asyncio.sleep(0.1)
            else:
                return


async def run(options: Options) -> None:
    """Run one replica until it is canceled."""
    async with dl.connect(kubeconfig=options.kubeconfig) as client:
        await run_with(client, options)


async def run_with(client: dl.Client, options: Options) -> None:
    """Run one replica until it is canceled. Caches start immediately, workers only while it leads."""
    identity = options.identity or f"{socket.gethostname()}_{uuid4()}"
    queue = dl.RateLimitingQueue[str](name="foos")
    async with (
        dl.EventRecorder(client, component="sample-controller", instance=identity) as recorder,
        dl.InformerFactory(client) as informers,
    ):
        await ensure_crd(client)
        foos = informers.informer(FOO)
        deployments = informers.informer(dl.kinds.DEPLOYMENT)
        foos.add_event_handler(dl.enqueue(queue))
        deployments.add_event_handler(dl.enqueue_owner(queue, FOO))
        await informers.wait_for_sync(timeout=30)
        logger.info("caches are synced", extra={"foos": len(foos.lister().list()), "identity": identity})

        controller = Controller(foos.lister(), deployments.lister(), recorder)
        lock = dl.LeaseLock(client, namespace=options.namespace, name="sample-controller", identity=identity)
        elector = dl.LeaderElector(lock, options.lease)
        async for term in elector.terms():
            async with term, asyncio.TaskGroup() as workers:
                logger.info("leading", extra={"identity": identity, "fencing_token": term.fencing_token})
                for _ in range(options.workers):
                    workers.create_task(controller.work(queue, term.client))
            logger.info("no longer leading", extra={"identity": identity})


def main() -> None:
    """Run from the command line until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="Create and update one Deployment for each Foo.")
    parser.add_argument("--kubeconfig", help="path of a kubeconfig (default: search order of kubectl)")
    parser.add_argument("--identity", default="", help="unique name of this replica (default: generated)")
    parser.add_argument("--namespace", default="default", help="namespace of the lease")
    parser.add_argument("--workers", type=int, default=2, help="number of concurrent reconciles")
    arguments = parser.parse_args()
    dl.configure_logging()

    async def run_until_signal() -> None:
        task = asyncio.ensure_future(run(Options(**vars(arguments))))
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    try:
        asyncio.run(run_until_signal())
    except dl.DeltaloopError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
