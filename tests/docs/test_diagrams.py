"""The diagrams and tables in ``internals/machines`` agree with the code."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tools.diagrams import cores
from tools.diagrams.__main__ import PAGES, stale, wanted
from tools.diagrams.draw import svg, table
from tools.diagrams.machines import all_diagrams, all_tables
from tools.diagrams.model import Diagram, Machine, Move, Step, Table

TABLES = all_tables()
CORES = Path(__file__).parents[2] / "src" / "deltaloop"


@pytest.fixture(scope="module")
def diagrams() -> list[Diagram]:
    return all_diagrams()


def test_pictures_and_tables_are_up_to_date(diagrams: list[Diagram]) -> None:
    assert stale(wanted(diagrams, TABLES)) == [], "make generate writes them"


def test_each_core_with_phases_has_diagram(diagrams: list[Diagram]) -> None:
    phases = {
        str(path.relative_to(CORES))
        for path in CORES.glob("*/core/**/*.py")
        if re.search(r"^class \w*Phase\(", path.read_text(), re.MULTILINE)
    }
    assert len(phases) >= 4
    assert phases - {diagram.source for diagram in diagrams} == set()


def test_each_source_exists_and_each_page_is_listed(diagrams: list[Diagram]) -> None:
    index = (PAGES.parent / "README.md").read_text()
    for diagram in diagrams:
        assert (CORES / diagram.source).is_file(), diagram.source
    for page in PAGES.glob("*.md"):
        assert f"(machines/{page.name})" in index, page.name


def test_all_drawn_states_are_reachable(diagrams: list[Diagram]) -> None:
    for diagram in diagrams:
        reached = {diagram.states[0]}
        for _ in diagram.states:
            reached |= {step.after for step in diagram.steps if step.before in reached}
        assert reached == set(diagram.states), diagram.name


def test_pictures_are_complete(diagrams: list[Diagram]) -> None:
    for diagram in diagrams:
        root = ET.fromstring(svg(diagram))
        numbers = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "n"]
        assert numbers == [str(number) for number in range(1, len(diagram.arrows()) + 1)]
        width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
        for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
            assert 0 < float(circle.attrib["cx"]) < width
            assert 0 < float(circle.attrib["cy"]) < height


def missed(machine: Machine[Any], steps: list[Step]) -> set[Step]:
    """Return the steps that 30 walks by chance take and that are not among those found."""
    chance = Random(1)
    return {step for _ in range(30) for step in machine.wander(chance, 20)} - {*steps}


def test_random_walks_take_drawn_steps_only(diagrams: list[Diagram]) -> None:
    for diagram in diagrams:
        if diagram.machine is not None:
            assert missed(diagram.machine, diagram.steps) == set(), diagram.name


def test_too_coarse_identity_is_detected() -> None:
    def count(numbers: list[int]) -> str:
        return f"{'many' if len(numbers) > 1 else 'few'}"

    moves: list[Move[list[int]]] = [("more", lambda numbers: numbers.append(1))]
    machine = Machine(list[int], lambda _: moves, count, count)
    states, steps = machine.walk()
    assert states == ["few"]
    assert Step("few", "more", "many") in missed(machine, steps)


def test_outdated_diagram_is_detected(diagrams: list[Diagram]) -> None:
    other = [*diagrams]
    shutdown = next(diagram for diagram in other if diagram.name == "shutdown")
    steps = [Step(step.before, step.what.replace("again", "once more"), step.after) for step in shutdown.steps]
    other[other.index(shutdown)] = Diagram(
        "shutdown", "reconciles", shutdown.title, shutdown.source, shutdown.states, steps
    )
    assert stale(wanted(other, TABLES)) == ["reconciles.md"]


def test_diagram_without_page_raises_error(diagrams: list[Diagram]) -> None:
    with pytest.raises(ValueError, match="has no place"):
        wanted([*diagrams, Diagram("another", "reconciles", "", "", ["a"], [])], TABLES)
    with pytest.raises(ValueError, match="nobody draws: shutdown"):
        wanted([diagram for diagram in diagrams if diagram.name != "shutdown"], TABLES)


def test_outdated_table_is_detected(diagrams: list[Diagram]) -> None:
    relay = next(table for table in TABLES if table.name == "relay")
    rows = [tuple(cell.replace("reset", "closed") for cell in row) for row in relay.rows]
    others = [Table(relay.name, relay.page, relay.source, relay.heads, rows) if t is relay else t for t in TABLES]
    assert stale(wanted(diagrams, others)) == ["faults.md"]


def test_each_table_row_has_all_cells() -> None:
    for made in TABLES:
        assert made.rows, made.name
        assert {len(row) for row in made.rows} == {len(made.heads)}, made.name
        assert (CORES / made.source).is_file()


# -- every core is on a page


def pages() -> list[str]:
    return [path.read_text() for path in PAGES.glob("*.md")]


def test_each_core_is_listed_on_page() -> None:
    every = cores.all_cores()
    assert len(every) > 150
    assert cores.without_page(pages(), every) == [], "name it in a `Cores:` paragraph of a page in internals/machines"


def test_new_core_without_page_is_detected() -> None:
    assert "cache/core/another.py" in cores.without_page(pages(), [*cores.all_cores(), "cache/core/another.py"])


def test_folder_includes_its_modules_except_excluded() -> None:
    text = "Cores: `a/core/x/`,\n`a/core/y/`, not `a/core/y/b.py`.\n"
    every = ["a/core/x/z.py", "a/core/y/a.py", "a/core/y/b.py", "a/core/x.py"]
    assert cores.named(text, every) == ["a/core/x/z.py", "a/core/y/a.py"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("`a/core/gone.py`", "does not exist: a/core/gone.py"),
        ("`a/core/x.py`, `a/core/`", "twice: a/core/x.py"),
    ],
)
def test_wrong_list_of_cores_raises_error(names: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        cores.named(f"Cores: {names}.\n", ["a/core/x.py"])


def test_cores_are_found_by_folder(tmp_path: Path) -> None:
    (tmp_path / "room" / "core").mkdir(parents=True)
    (tmp_path / "room" / "core" / "line.py").touch()
    (tmp_path / "room" / "driver.py").touch()
    assert cores.all_cores(tmp_path) == ["room/core/line.py"]


def test_unbounded_machine_raises_error() -> None:
    def grow(numbers: list[int]) -> list[Move[list[int]]]:
        del numbers
        return [("more", lambda numbers: numbers.append(len(numbers)))]

    with pytest.raises(ValueError, match="not bounded"):
        Machine(list[int], grow, lambda _: "the same", len).walk(most_states=20)


def test_table_contains_each_step_once() -> None:
    steps = [Step("a", "x", "b"), Step("a", "y", "b"), Step("a", "z", "a"), Step("b", "x", "a")]
    assert table(Diagram("n", "p", "t", "s", ["a", "b"], steps)).splitlines()[2:] == [
        "| 1 | a | x; y | b |",
        "|  | a | z | the same |",
        "| 2 | b | x | a |",
    ]
