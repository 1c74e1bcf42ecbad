"""Two embedded servers: one has the definition that is published, the other the one that is made from the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.apiserver.serving import serving

from lab.corpus.comparing import FAULT, VERDICT
from lab.corpus.counting import Count, Counts, Found
from lab.corpus.outcomes import Outcome
from lab.corpus.projects import Plan, ProjectRun
from lab.corpus.reading import Project
from lab.corpus.requests import Request
from lab.corpus.sending import LiveServer, Sender, Server


@dataclass(frozen=True)
class OfClass:
    """A server to which the definition that is made from the class is given in the place of the published one."""

    server: Server
    made: Mapping[str, Any]

    async def ask(self, key: str, request: Request, stored: Mapping[str, Any] | None) -> tuple[Outcome, Any]:
        if request.action == "create a CRD":
            request = replace(request, body=self.made)
        return await self.server.ask(key, request, stored)


@dataclass(frozen=True)
class Verdicts:
    """What came of the writes to one kind."""

    kind: str
    counts: Counts

    @property
    def writes(self) -> Count:
        """All writes, of samples, of what is made from the schema and of mutations."""
        plain, mutated = self.counts.total("writes"), self.counts.total("mutations")
        return Count(*(getattr(plain, name) + getattr(mutated, name) for name in ("requests", "equal", "same_verdict")))

    @property
    def differences(self) -> list[Found]:
        """The classes of differences in the verdict, the largest first; other differences do not count."""
        return [each for each in self.counts.in_order() if each.difference.what in (VERDICT, FAULT)]


def only(project: Project, kind: str) -> Project:
    """Return what a project has of one kind.

    Raises:
        LookupError: If it has no such kind, or no object of it.
    """
    crds = [crd for crd in project.crds if crd.object["spec"]["names"]["kind"] == kind][:1]
    if not crds:
        raise LookupError(f"{project.name} has no kind {kind}")
    group = crds[0].object["spec"]["group"]
    samples = [
        sample
        for sample in project.samples
        if sample.object.get("kind") == kind and str(sample.object.get("apiVersion")).startswith(f"{group}/")
    ]
    if not samples:
        raise LookupError(f"{project.name} has no {kind}")
    return Project(project.name, crds, samples)


async def compare_kind(project: Project, made: Mapping[str, Any], plan: Plan) -> Verdicts:
    """Send what a project has of a kind, and what is made wrong of it, to both servers.

    Args:
        project: The kind's published definition, and objects.
        made: The definition that is made from the classes of its versions.
        plan: How much is sent.
    """
    async with serving() as one, serving() as two:
        lives = [LiveServer(one.call), LiveServer(two.call)]
        sender = Sender(OfClass(lives[0], made), lives[1])
        await ProjectRun(sender, only(project, made["spec"]["names"]["kind"]), plan, lives=lives).run()
    return Verdicts(made["spec"]["names"]["kind"], sender.counts)
