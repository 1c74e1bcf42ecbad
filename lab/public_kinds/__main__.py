"""Hold ten classes against the definitions that their projects publish: ``make -C lab public-kinds``.

Of each kind, the corpus' samples and mutations of them are written to two embedded servers: one has the published
definition, the other the one that is made from the class. The table goes to ``build/public-kinds.txt``, too, with a
reproduction of each class of different verdicts. It fails if verdicts of a kind differ and ``KINDS`` does not say why.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import deltaloop as dl
from lab.corpus.counting import readable
from lab.corpus.projects import Plan
from lab.corpus.reading import read_folder
from lab.public_kinds import (
    app_project,
    certificate,
    http_route,
    knative_service,
    kustomization,
    machine_health_check,
    node_pool,
    postgres_cluster,
    scaled_object,
    service_monitor,
)
from lab.public_kinds.comparing import Verdicts, compare_kind

ROOT: Final = Path(__file__).resolve().parents[2]
OUTPUT: Final = ROOT / "build" / "public-kinds.txt"


@dataclass(frozen=True)
class PublicKind:
    """A kind of another project.

    Attributes:
        project: Its file in the corpus.
        classes: One for each version.
        explained: Why verdicts differ; "" if they may not.
    """

    project: str
    classes: Sequence[type]
    explained: str = ""


KINDS: Final = (
    PublicKind("cert-manager", [certificate.Certificate]),
    PublicKind("gateway-api", [http_route.HTTPRoute, http_route.HTTPRouteV1Beta1]),
    PublicKind("cloudnative-pg", [postgres_cluster.Cluster]),
    PublicKind("karpenter-provider-aws", [node_pool.NodePool]),
    PublicKind("keda", [scaled_object.ScaledObject]),
    PublicKind("kustomize-controller", [kustomization.Kustomization]),
    PublicKind("prometheus-operator", [service_monitor.ServiceMonitor]),
    PublicKind("serving", [knative_service.Service]),
    PublicKind(
        "argo-cd",
        [app_project.AppProject],
        "a class with a status has the subresource, the published one has a status without: it takes one in any write",
    ),
    PublicKind(
        "cluster-api", [machine_health_check.MachineHealthCheck, machine_health_check.MachineHealthCheckV1Beta1]
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.public_kinds", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus", help="the folder")
    parser.add_argument("--kind", action="append", default=[], help="only this kind; may be given several times")
    parser.add_argument("--mutations", type=int, default=400, help="at most so many of each version of a kind")
    parser.add_argument("--seed", type=int, default=Plan.seed, help="chooses the mutations")
    options = parser.parse_args()
    plan = Plan(mutations=options.mutations, seed=options.seed, explain=False)
    # As on a real server, applying what is of another type is a 500: of that the answers tell.
    logging.getLogger("deltaloop").setLevel(logging.CRITICAL)
    sys.exit(asyncio.run(run(options.corpus, options.kind, plan)))


async def run(folder: Path, wanted: Sequence[str], plan: Plan) -> int:
    """Compare the kinds, one after the other; return the command's exit code."""
    try:
        projects = {project.name: project for project in read_folder(folder)}
    except FileNotFoundError:
        print(f"skipped: no corpus at {folder}; CORPUS names the folder of another one")
        return 0
    lines = [f"{'kind':22}{'writes':>8}{'same verdict':>14}{'same answer':>14}"]
    print(lines[0])
    details, unexplained = list[str](), 0
    for each in KINDS:
        if wanted and each.classes[0].__name__ not in wanted:
            continue
        began = time.monotonic()
        found = await compare_kind(projects[each.project], dl.generate_crd(*each.classes), plan)
        lines.append(row(found))
        print(f"{lines[-1]}   {time.monotonic() - began:.0f} s", flush=True)
        if found.differences:
            print(f"  {sum(one.number for one in found.differences)} differences: {each.explained or 'NOT EXPLAINED'}")
            details.append(readable(found.differences))
            unexplained += not each.explained
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text("\n".join([*lines, "", *details]))
    print(f"one request of each class of differences is in {OUTPUT.relative_to(ROOT)}")
    return int(unexplained > 0)


def row(found: Verdicts) -> str:
    writes = found.writes
    parts = (f"{writes.same_verdict / writes.requests:.2%}", f"{writes.equal / writes.requests:.2%}")
    return f"{found.kind:22}{writes.requests:>8}{parts[0]:>14}{parts[1]:>14}"


if __name__ == "__main__":
    main()
