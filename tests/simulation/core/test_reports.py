"""The forms in which a report is told."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec

from deltaloop.simulation.core.end_states import EndState
from deltaloop.simulation.core.oracles import Oracle, Problem, SimulationRun
from deltaloop.simulation.core.reports import (
    Failure,
    SimulationReport,
    annotation_lines,
    replaying_test,
    report_fields,
    report_page,
)
from deltaloop.simulation.core.schedules import parse_schedule
from deltaloop.testing.core.program_writes import ProgramWrite


def write(number: int, name: str, code: int) -> ProgramWrite:
    return ProgramWrite(
        number=number,
        replica="replica-1",
        task="reconcile <b> default/a",
        at=number / 3,
        verb="create",
        resource="secrets",
        key=f"default/{name}",
        code=code,
        body={"data": {"word": "planted"}},
        stored={"data": {"word": "planted"}},
        occurrence=number,
    )


REFERENCE = SimulationRun(end=EndState({}), writes=(write(1, "a", 201), write(2, "b", 201)))
RUN = SimulationRun(end=EndState({}), writes=(write(1, "a", 201), write(2, "b", 0)))
PROBLEM = Problem(Oracle.END_STATE, "v1/Secret default/b: 100%, <gone>", ("v1/Secret", "default/b"))
FAILURES = tuple(
    Failure(schedule=parse_schedule(text), problems=(PROBLEM,), run=RUN)
    for text in ("lost:create:secrets:2", "lost:create:secrets:2,order:random:1", "")
)
REPORT = SimulationReport(
    runs=9, writes=tuple(each.name for each in REFERENCE.writes), failures=FAILURES, reference=REFERENCE
)


class Tags(HTMLParser):
    """Keeps what is open: a page that escapes what it shows closes all that it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_tells_each_failure_and_the_run_without_faults() -> None:
    page = report_page(REPORT, title="Simulation of <scenario>")
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert page.count("<h2>") == len(FAILURES) + 1
    assert page.count('<tr class="struck">') == 2
    assert "reconcile &lt;b&gt; default/a" in page
    assert "<scenario>" not in page
    assert "--replay lost:create:secrets:2,order:random:1" in page


def test_programs_get_plain_values() -> None:
    fields = msgspec.json.decode(msgspec.json.encode(report_fields(REPORT)))
    first = fields["failures"][0]
    assert fields["writes"] == ["1st create of secrets", "2nd create of secrets"]
    assert (first["replay"], first["problems"][0]["oracle"]) == ("lost:create:secrets:2", "end state")
    assert [each["code"] for each in first["writes"]] == [201, None]
    assert [bool(each["struck"]) for each in first["writes"]] == [False, True]


def test_a_line_for_each_failure_says_where_the_scenario_is() -> None:
    lines = [*annotation_lines(REPORT, file="a,b:c.py", line=7)]
    assert len(lines) == len(FAILURES)
    assert lines[0].startswith("::error file=a%2Cb%3Ac.py,line=7,title=simulation::the answer to the 2nd create")
    assert "100%25, <gone>" in lines[0]
    assert "%0Aagain: lost:create:secrets:2" in lines[0]
    assert all("\n" not in line for line in lines)


def test_tests_are_written_whose_names_differ() -> None:
    text = replaying_test(REPORT, module="my_operator", scenario="grows")
    compile(text, "test_found.py", "exec")
    assert text.count("def test_") == len({line for line in text.splitlines() if line.startswith("def ")}) == 3
    assert "from my_operator import grows" in text
    assert "Simulation(grows).replay(parse_schedule('lost:create:secrets:2'))" in text


def test_nothing_of_an_object_is_told() -> None:
    told = [str(REPORT), repr(REPORT), report_page(REPORT, title=""), str(report_fields(REPORT))]
    assert "planted" not in str(told)


def test_how_many_ways_there_are() -> None:
    assert REPORT.summary == "9 runs over 2 writes: 3 ways to go wrong"
    assert msgspec.structs.replace(REPORT, failures=FAILURES[:1]).summary.endswith("one way to go wrong")
