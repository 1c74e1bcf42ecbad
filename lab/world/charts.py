"""Steps: charts of ``deltaloop new`` and ``deltaloop package``, installed by Helm, and their programs at work.

Nothing runs Pods here: KWOK says that they are ready, and a program runs beside the server, with the arguments and the
token that the Pods of its chart would have.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import deltaloop as dl
from deltaloop.api.json_values import at
from deltaloop.api.yaml_reader import read_yaml, read_yaml_documents
from lab.world import build
from lab.world.build import WorldProgram
from lab.world.programs import free_port, running
from lab.world.world import Output, StepError, World

ROOT: Final = Path(__file__).resolve().parents[2]
DELTALOOP: Final = Path(sys.executable).with_name("deltaloop")
WAIT: Final = ("--wait", "--timeout", "90s")
KINDS: Final = (
    "deployments", "services", "networkpolicies", "poddisruptionbudgets", "roles", "rolebindings",
)  # fmt: skip
ROLES: Final = (dl.kinds.CLUSTER_ROLE, dl.kinds.ROLE)
_NUMBERS: Final = itertools.count(1)
GREETERS: Final = "greeters.greeter.example.org"
DATABASES: Final = "databases.example.com"


@dataclass(frozen=True)
class Release:
    """A chart that Helm has installed, and its program.

    Attributes:
        world: Where.
        program: The Helm that did it.
        name: Of the release.
        chart: Its folder.
        target: What ``deltaloop run`` is given.
        flags: Further flags of it.
    """

    world: World
    program: WorldProgram
    name: str
    chart: Path
    target: str
    flags: tuple[str, ...] = ()

    async def helm(self, *arguments: str) -> Output:
        """Run Helm in the step's namespace."""
        return await self.world.run([self.program.path, "-n", self.world.namespace, *arguments])

    async def arguments(self) -> list[str]:
        """Return the arguments of the program's container, but for addresses, which would be those of the machine."""
        deployment = await self.world.client.get(dl.kinds.DEPLOYMENT, self.name, namespace=self.world.namespace)
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        given = [each for each in container["args"] if "bind-address=" not in each]
        return [*given, "--health-probe-bind-address=0", "--metrics-bind-address=0"]

    async def account(self) -> Path:
        """Return a kubeconfig of the program's account."""
        made = await self.world.kubectl("create", "token", self.name, "--duration=1h", secret=True)
        config: Any = read_yaml(self.world.place.kubeconfig.read_text(), source="kubeconfig")
        config["users"][0]["user"] = {"token": made.stdout.strip()}
        config["contexts"][0]["context"]["namespace"] = self.world.namespace
        file = self.world.place.scratch / f"{self.world.namespace}.kubeconfig"
        file.touch(0o600)
        file.write_text(json.dumps(config))
        return file

    async def command(self, *more: str) -> list[str | Path]:
        """Return the command of the program."""
        account = ("--kubeconfig", str(await self.account()))
        program: list[str | Path] = ["env", f"PYTHONPATH={ROOT}", DELTALOOP, "run", self.target]
        return [*program, *await self.arguments(), *account, *self.flags, *more]

    @asynccontextmanager
    async def at_work(self, name: str, *more: str) -> AsyncGenerator[None]:
        """Run the program; it may not be refused anything.

        Raises:
            StepError: If it was.
        """
        with running(self.world.place, name, await self.command(*more)):
            yield
        log = (self.world.place.logs / f"{name}.log").read_text()
        if "forbidden" in log.lower() or "is not allowed to" in log:
            raise StepError(f"{self.name} may not do all that it does: {self.world.place.logs}/{name}.log")

    async def rules(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the rules of the release's roles, by the kind of the role and their number."""
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for kind in ROLES:
            role = await self._role(kind)
            found |= {(kind.kind, number): rule for number, rule in enumerate(role["rules"])}
        return found

    async def _role(self, kind: dl.ResourceType[dl.Resource]) -> dict[str, Any]:
        namespace = self.world.namespace if kind.namespaced else None
        return (await self.world.client.get(kind, self.name, namespace=namespace)).to_dict()

    async def refused_without(
        self, kind: dl.ResourceType[dl.Resource], number: int, changed: str, where: World
    ) -> None:
        """Take a rule away: the program does not start, or is refused what it does; then give the rule back.

        Args:
            kind: Of the role.
            number: Of the rule in it.
            changed: An object whose replicas are changed, so that there is something to do.
            where: Its namespace.
        """
        role = await self._role(kind)
        rule = role["rules"][number]
        others = [each for at_, each in enumerate(role["rules"]) if at_ != number]
        await self._write(kind, others)
        await self.world.until(f"{rule} is gone", lambda: self._allows(rule, no=True))
        resource, name = rule["resources"][0].partition("/")[0], f"{self.name}-without-{kind.kind.lower()}-{number}"

        async def is_refused() -> bool:
            patch = {"spec": {"replicas": next(_NUMBERS) % 3 + 1}}
            await where.kubectl("patch", changed, "--type=merge", "-p", json.dumps(patch), fails=None)
            log = (self.world.place.logs / f"{name}.log").read_text()
            lines = [line for line in log.splitlines() if "forbidden" in line.lower() or "is not allowed to" in line]
            return any(resource in line for line in lines)

        with running(self.world.place, name, await self.command()):
            await self.world.until(f"without {rule} the program is refused something", is_refused)
        await self._write(kind, role["rules"])
        await self.world.until(f"{rule} is back", lambda: self._allows(rule))

    async def _write(self, kind: dl.ResourceType[dl.Resource], rules: list[Any]) -> None:
        namespace = self.world.namespace if kind.namespaced else None
        await self.world.client.patch(kind, self.name, {"rules": rules}, namespace=namespace)

    async def _allows(self, rule: dict[str, Any], *, no: bool = False) -> bool:
        """Tell whether the server lets the account do what a rule says: a real one reads roles from a cache."""
        resource, _, subresource = rule["resources"][0].partition("/")
        attributes = {
            "verb": rule["verbs"][-1],
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "namespace": self.world.namespace,
            "name": rule.get("resourceNames", [""])[0],
        }
        account = f"system:serviceaccount:{self.world.namespace}:{self.name}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.world.namespace}", "system:authenticated"]
        asked = {"metadata": {}, "spec": {"resourceAttributes": attributes, "user": account, "groups": groups}}
        answer = await self.world.client.create("authorization.k8s.io/v1/SubjectAccessReview", asked)
        return bool(at(answer.to_dict(), "status", "allowed")) is not no


async def our_chart(world: World) -> None:
    """A new project's chart is installed, its program works under its account, and needs each rule of its role."""
    folder = world.place.scratch / "greeter"
    await world.run([DELTALOOP, "new", "greeter", "--group", "greeter.example.org", "--folder", folder])
    await world.run([DELTALOOP, "package", folder / "greeter.py", "--helm", folder / "chart", "--check"])
    release = Release(world, build.HELM_4, "greeter", folder / "chart", str(folder / "greeter.py"))
    world.record_text("install", await release.helm("install", "greeter", str(release.chart), *WAIT))
    await world.record_objects("installed", *KINDS)
    rules = await release.rules()
    world.record("rules", list(rules.values()))
    access = world.place.scratch / "access.json"
    async with release.at_work("greeter", "--record-access", str(access)):
        await world.kubectl("apply", "--server-side", "-f", str(folder / "sample.yaml"))
        await _until_ready(world, replicas=2)
        await world.kubectl("patch", "greeter", "sample", "--type=merge", "-p", '{"spec":{"replicas":3}}')
        await _until_ready(world, replicas=3)
        await world.record_objects("at work", GREETERS)
        before = await world.client.get(dl.kinds.DEPLOYMENT, "sample", namespace=world.namespace)
        await world.kubectl("delete", "deployment", "sample")
        await world.until("what was deleted is back", lambda: _is_back(world, before.uid))
    used = await world.run([DELTALOOP, "generate", "rbac", "--from", access, "--name", "greeter"])
    unused = verbs_of(rules.values()) - verbs_of(_rules_of(used.stdout))
    world.record("allowed and not used", sorted(unused))
    if more := verbs_of(_rules_of(used.stdout)) - verbs_of(rules.values()):
        raise StepError(f"the program did what its role does not have: {sorted(more)}")
    await _each_rule_is_needed(release, "greeter/sample", world)
    await _second_version(release, folder)
    await _end(release, GREETERS)


async def _each_rule_is_needed(release: Release, changed: str, where: World) -> None:
    """Take each rule away: the program is refused something.

    But for events, which are told as far as that is allowed and were none here, and finalizers of owners, for which
    servers ask that have the admission plugin OwnerReferencesPermissionEnforcement.
    """
    for kind in ROLES:
        for number, rule in [(n, each) for (name, n), each in (await release.rules()).items() if name == kind.kind]:
            resource = rule["resources"][0]
            for secret in rule.get("resourceNames", ()) if resource == "secrets" else ():
                # It is written when there is nothing in it.
                await release.world.kubectl("patch", "secret", secret, "--type=merge", "-p", '{"data":null}')
            if resource != "events" and not resource.endswith("/finalizers"):
                await release.refused_without(kind, number, changed, where)


async def _second_version(release: Release, folder: Path) -> None:
    """Add a field to the class, package it, and upgrade the release: the definition changes with it."""
    world, module = release.world, folder / "greeter.py"
    text = module.read_text()
    before = "    replicas: Annotated[int, Meta(ge=0, le=100)] = 1\n"
    if before not in text:
        raise StepError("the template of new projects is another one")
    module.write_text(text.replace(before, f'{before}    colour: str = "red"\n'))
    await world.run([DELTALOOP, "package", module, "--version", "0.2.0", "--helm", release.chart])
    upgraded = await release.helm("upgrade", "greeter", str(release.chart), "--set", "replicas=1", *WAIT)
    world.record_text("upgrade", upgraded)
    # How often the sample was changed until now is chance: of the release its names and what is new.
    mine = await world.kubectl("get", ",".join(KINDS), "-l", "app.kubernetes.io/version=0.2.0", "-o", "name")
    world.record_text("upgraded", mine)
    crd = await world.client.get(dl.kinds.CUSTOM_RESOURCE_DEFINITION, GREETERS)
    schema = crd.to_dict()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    world.record("new field", schema["colour"])
    async with release.at_work("greeter-2"):
        await world.kubectl(
            "patch", "greeter", "sample", "--type=merge", "-p", '{"spec":{"colour":"blue","replicas":1}}'
        )
        await _until_ready(world, replicas=1)
    (greeter,) = await world.objects(GREETERS)
    world.record("at work again", [greeter.to_dict()["spec"], greeter["status"]["readyReplicas"]])


async def _is_back(world: World, uid: str) -> bool:
    found = await world.client.find(dl.kinds.DEPLOYMENT, "sample", namespace=world.namespace)
    return found is not None and found.uid != uid and found.get("status", {}).get("readyReplicas") == 3


async def _until_ready(world: World, *, replicas: int) -> None:
    def is_ready(greeter: dl.Resource) -> bool:
        status = greeter.get("status", {})
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        seen = status.get("observedGeneration") == greeter.generation
        return seen and conditions.get("Ready") == "True" and status.get("readyReplicas") == replicas

    await world.until_all(GREETERS, is_ready, count=1)


async def _end(release: Release, kind: str) -> None:
    """Uninstall the release; definitions and objects stay, and go with this step."""
    world = release.world
    world.record_text("uninstall", await release.helm("uninstall", release.name, *WAIT))
    left = await world.kubectl("get", ",".join((*KINDS, "serviceaccounts", kind)), "-o", "name")
    world.record_text("left", left)
    cluster = await world.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    world.record(
        "left of the cluster's", [each for each in cluster.stdout.split() if each.endswith(f"/{release.name}")]
    )
    await world.kubectl("delete", "crd", kind)


async def our_webhooks(world: World) -> None:
    """The Database example's chart: its certificates outlive an upgrade, and its webhooks are asked by the server."""
    chart = world.place.scratch / "database"
    target = "examples.database.webhooks"
    await world.run([DELTALOOP, "package", target, "--name", "database", "--helm", chart])
    release = Release(world, build.HELM_3, "database", chart, target)
    world.record_text("install", await release.helm("install", "database", str(chart), *WAIT))
    await world.record_objects("installed", *KINDS)
    world.record("rules", [*(await release.rules()).values()])
    where = f"127.0.0.1:{free_port()}"
    release = replace(release, flags=("--webhook-bind-address", where))
    async with release.at_work("database"):
        await world.until("the authority is told", lambda: _is_told(world))
    world.record_text("upgrade", await release.helm("upgrade", "database", str(chart), "--set", "replicas=1", *WAIT))
    world.record("told after the upgrade", await _is_told(world))
    await _lead(world, f"https://{where}")
    release = replace(release, flags=(*release.flags, "--webhook-url", f"https://{where}"))
    # Where the program is its webhooks are not asked.
    shops = replace(world, namespace=f"{world.namespace}-shops")
    await world.kubectl("create", "namespace", shops.namespace)
    async with release.at_work("database-2"):
        await world.until("the webhooks answer", lambda: _answers(shops))
        await _reviews(shops)
    await _each_rule_is_needed(release, "databases.v1.example.com/shop", shops)
    async with release.at_work("database-3"):
        await world.until("the webhooks answer again", lambda: _answers(shops))
        await _give_up(shops)
    await _end(release, DATABASES)
    await world.kubectl("delete", "namespace", shops.namespace)


async def _give_up(shops: World) -> None:
    """Delete the databases without waiting for their last backups."""
    for name in ("shop", "old"):
        await shops.kubectl("delete", "databases.v1.example.com", name, "--wait=false")

    async def are_gone() -> bool:
        for each in await shops.objects("example.com/v1/Database"):
            nobody = '{"metadata":{"finalizers":null}}'
            await shops.kubectl(
                "patch", "databases.v1.example.com", each.name, "--type=merge", "-p", nobody, fails=None
            )
        return not await shops.objects("example.com/v1/Database")

    await shops.until("the databases are gone", are_gone)


CONFIGURATIONS: Final = ("mutatingwebhookconfiguration/database", "validatingwebhookconfiguration/database")


async def _configurations(world: World) -> list[dict[str, Any]]:
    """Return where the server is led to: of both configurations, and of the conversion."""
    found = [json.loads((await world.kubectl("get", each, "-o", "json")).stdout) for each in CONFIGURATIONS]
    crd = json.loads((await world.kubectl("get", "crd", DATABASES, "-o", "json")).stdout)
    clients = [hook["clientConfig"] for each in found for hook in each["webhooks"]]
    return [*clients, crd["spec"]["conversion"]["webhook"]["clientConfig"]]


async def _is_told(world: World) -> bool:
    return all(each.get("caBundle") for each in await _configurations(world))


async def _lead(world: World, url: str) -> None:
    """Lead the server to this machine in place of a Service, which nothing here makes reachable."""
    paths = [each["service"]["path"] for each in await _configurations(world)]
    places = [(each, "/webhooks/0/clientConfig") for each in CONFIGURATIONS]
    places.append((f"crd/{DATABASES}", "/spec/conversion/webhook/clientConfig"))
    for (name, place), path in zip(places, paths, strict=True):
        change = [{"op": "replace", "path": place, "value": {"url": f"{url}{path}"}}]
        await world.kubectl("patch", name, "--type=json", "-p", json.dumps(change))


def _database(name: str, version: str = "v1", **spec: Any) -> str:
    return json.dumps(
        {"apiVersion": f"example.com/{version}", "kind": "Database", "metadata": {"name": name}, "spec": spec}
    )


async def _answers(world: World) -> bool:
    done = await world.kubectl("create", "--dry-run=server", "-f", "-", text=_database("probe"), fails=None)
    return done.code == 0


async def _reviews(world: World) -> None:
    """Have each webhook asked: one completes, one refuses, one converts."""
    await world.kubectl("create", "-f", "-", text=_database("shop", image="postgres"))
    await world.kubectl("create", "-f", "-", text=_database("old", version="v1beta1", servers=2))
    spec = "-o=jsonpath={.spec.image} {.spec.replicas} {.spec.servers}"
    for version in ("v1", "v1beta1"):
        for name in ("shop", "old"):
            shown = await world.kubectl("get", f"databases.{version}.example.com", name, spec)
            world.record_text(f"{name} in {version}", shown)
    patch = '{"spec":{"storage":"5Gi"}}'
    refused = await world.kubectl("patch", "databases.v1.example.com", "shop", "--type=merge", "-p", patch, fails=True)
    world.record_text("another disk", refused)


def verbs_of(rules: Iterable[dict[str, Any]]) -> set[str]:
    """Return what rules allow: ``VERB RESOURCE.GROUP``, with the name if it is one object."""
    return {
        f"{verb} {resource}{f'.{group}' if group else ''} {' '.join(rule.get('resourceNames', []))}".strip()
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _rules_of(printed: str) -> Sequence[dict[str, Any]]:
    return [rule for role in read_yaml_documents(printed) for rule in role.get("rules", ())]
