"""How many kinds of a corpus have a life when nothing but their definition is known.

    python -m lab.simulation.public_kinds ../shared/corpus

Each definition alone is made into a scenario, which is run once without faults. A line for each kind that has none says
why; the last one counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import deltaloop as dl
from deltaloop.errors import BrokenReferenceError, InvalidArgumentError
from deltaloop.simulation import Simulation
from deltaloop.simulation.made_scenario import made_scenario
from lab.corpus.reading import read_folder


@dl.controller("v1/ConfigMap", name="does-nothing")
async def does_nothing(request: dl.Request, ctx: dl.Context) -> None:
    """Look on."""


def main(folder: Path) -> None:
    """Print what has no life, and how many have one."""
    crds = {sample.object["metadata"]["name"]: sample.object for each in read_folder(folder) for sample in each.crds}
    without = 0
    for name, crd in crds.items():
        try:
            _ = Simulation(made_scenario([does_nothing], [crd])).reference
        except (BrokenReferenceError, InvalidArgumentError) as error:
            without += 1
            print(f"{name}: {error}")
    print(f"{len(crds) - without} of {len(crds)} kinds have a life")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
