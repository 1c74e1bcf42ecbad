"""The forms in which a report is told."""

from __future__ import annotations

from dataclasses import replace
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
from deltaloop.testing.injected_faults.core.program_writes import ProgramWrite, UserStep, WriteReason

WHY = WriteReason(
    reconcile="<b> default/a, reconcile 3",
    triggers=("informer update Login default/a (9→12)", "timer tick"),
    unseen=("secrets default/a (deleted 14)",),
)


def write(number: int, name: str, code: int, reason: WriteReason | None = None) -> ProgramWrite:
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
        reason=reason,
    )


REFERENCE = SimulationRun(end=EndState({}), writes=(write(1, "a", 201), write(2, "b", 201)))
RUN = SimulationRun(end=EndState({}), writes=(write(1, "a", 201), write(2, "b", 0)))
PROBLEM = Problem(Oracle.END_STATE, "v1/Secret default/b: 100%, <gone>", ("v1/Secret", "default/b"))
FAILURES = tuple(
    Failure(schedule=parse_schedule(text), problems=(PROBLEM,), run=RUN)
    for text in ("lost-response:create:secrets:2", "lost-response:create:secrets:2,order:random:1", "")
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


def test_report_page_contains_failures_and_reference() -> None:
    page = report_page(REPORT, title="Simulation of <scenario>")
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    assert page.count("<h2>") == len(FAILURES) + 1
    assert page.count('<tr class="struck">') == 2
    assert "reconcile &lt;b&gt; default/a" in page
    assert "<scenario>" not in page
    assert "--replay lost-response:create:secrets:2,order:random:1" in page


def test_story_contains_triggers_and_unseen_changes_per_reconcile() -> None:
    many = WriteReason(reconcile="c default/a, reconcile 4", triggers=tuple(f"timer {number}" for number in range(7)))
    writes = (write(1, "a", 201, WHY), write(2, "b", 201, WHY), write(3, "c", 0, many), write(4, "d", 201))
    step = UserStep(at=0.5, text="delete secrets default/a", after=1)
    run = SimulationRun(end=EndState({}), writes=writes, steps=(step,))
    failure = Failure(schedule=(), problems=(PROBLEM,), run=run)
    assert str(failure).splitlines()[3:-1] == [
        "        0.333 s  <b> default/a, reconcile 3: informer update Login default/a (9→12), timer tick",
        "                 not seen yet: secrets default/a (deleted 14)",
        "        0.333 s    create secrets default/a -> 201",
        "        0.500 s  the user: delete secrets default/a",
        "        0.667 s    create secrets default/b -> 201",
        "        1.000 s  c default/a, reconcile 4: timer 0, timer 1, timer 2, timer 3, timer 4, 2 more",
        "        1.000 s    create secrets default/c -> no response",
        "        1.333 s  create secrets default/d -> 201",
    ]
    report = msgspec.structs.replace(REPORT, failures=(failure,))
    page = report_page(report, title="")
    assert "&lt;b&gt; default/a, reconcile 3: informer update Login" in page
    assert "not seen yet: secrets default/a (deleted 14)" in page
    tags = Tags()
    tags.feed(page)
    assert not tags.open
    told = msgspec.json.decode(msgspec.json.encode(report_fields(report)))["failures"][0]["writes"]
    assert told[1]["because"] == [*WHY.triggers]
    assert [each["reconcile"] for each in told] == [WHY.reconcile, WHY.reconcile, many.reconcile, None]
    assert [each["unseen"] for each in told] == [[*WHY.unseen], [*WHY.unseen], [], []]


def test_long_story_is_shortened_in_text() -> None:
    run = SimulationRun(end=EndState({}), writes=tuple(write(number, f"n{number}", 201) for number in range(1, 201)))
    failure = Failure(schedule=(), problems=(PROBLEM,), run=run)
    lines = str(failure).splitlines()[3:-1]
    assert len(lines) == 81
    assert "120 more lines" in lines[60]
    assert (lines[59].split()[4], lines[61].split()[4]) == ("default/n60", "default/n181")
    assert report_page(msgspec.structs.replace(REPORT, failures=(failure,)), title="").count("default/n") == 200


def test_story_marks_wrong_write() -> None:
    kind = {"apiVersion": "v1", "kind": "Secret"}
    made = [replace(write(number, "a", 201), stored=kind) for number in (1, 2)]
    gone = replace(write(3, "a", 200), verb="delete", lost_lease="default/lease")
    refused = replace(write(4, "a", 409), verb="update")
    other = replace(write(5, "b", 201), lost_lease="default/lease")

    def marks(problem: Problem, *writes: ProgramWrite) -> dict[int, str]:
        failure = Failure(schedule=(), problems=(problem,), run=SimulationRun(end=EndState({}), writes=writes))
        report = msgspec.structs.replace(REPORT, failures=(failure,))
        found = {each.number: failure.problem_at(each) for each in writes if failure.problem_at(each)}
        for text in found.values():
            assert f"   <- {text}" in str(failure)
            assert f'<span class="wrong">{text}</span>' in report_page(report, title="")
            (told,) = msgspec.json.decode(msgspec.json.encode(report_fields(report)))["failures"]
            assert [each["problem"] for each in told["writes"] if each["problem"]] == [text]
        return found

    end = Problem(Oracle.END_STATE, "", ("v1/Secret", "default/a", "data"))
    assert marks(end, *made, refused, other) == {2: "its final state is wrong"}
    assert marks(end, *made, gone, refused, other) == {3: "its final state is wrong"}
    place = ("secrets", "default/a")
    assert marks(Problem(Oracle.RECREATED, "", place), made[0], gone, made[1]) == {3: "its content is lost"}
    assert marks(Problem(Oracle.LEADERSHIP, "", place), gone, *made, other) == {3: "its lease was lost"}
    assert not marks(Problem(Oracle.SETTLES, "", place), *made)
    assert not marks(Problem(Oracle.SCENARIO, ""), *made)


def test_report_fields_are_plain_values() -> None:
    fields = msgspec.json.decode(msgspec.json.encode(report_fields(REPORT)))
    first = fields["failures"][0]
    assert fields["writes"] == ["1st create of secrets", "2nd create of secrets"]
    assert (first["replay"], first["problems"][0]["oracle"]) == ("lost-response:create:secrets:2", "end state")
    assert [each["code"] for each in first["writes"]] == [201, None]
    assert [bool(each["fault"]) for each in first["writes"]] == [False, True]


def test_annotations_contain_file_and_line() -> None:
    lines = [*annotation_lines(REPORT, file="a,b:c.py", line=7)]
    assert len(lines) == len(FAILURES)
    assert lines[0].startswith("::error file=a%2Cb%3Ac.py,line=7,title=simulation::the response to the 2nd create")
    assert "100%25, <gone>" in lines[0]
    assert "%0Aagain: lost-response:create:secrets:2" in lines[0]
    assert all("\n" not in line for line in lines)


def test_generated_tests_have_unique_names() -> None:
    text = replaying_test(REPORT, module="my_operator", scenario="grows")
    compile(text, "test_found.py", "exec")
    assert text.count("def test_") == len({line for line in text.splitlines() if line.startswith("def ")}) == 3
    assert "from my_operator import grows" in text
    assert 'Simulation(grows).replay(parse_schedule("lost-response:create:secrets:2"))' in text


def test_replay_contains_seed() -> None:
    seeded = msgspec.structs.replace(FAILURES[0], seed=7)
    assert seeded.replay == "seed:7,lost-response:create:secrets:2"
    assert str(seeded).endswith("again: 'seed:7,lost-response:create:secrets:2'")
    text = replaying_test(msgspec.structs.replace(REPORT, failures=(seeded,)), module="m", scenario="grows")
    compile(text, "test_found.py", "exec")
    assert "import Simulation, SimulationOptions, parse_schedule" in text
    schedule = 'parse_schedule("lost-response:create:secrets:2")'
    assert f"Simulation(grows, SimulationOptions(seed=7)).replay({schedule})" in text
    assert "SimulationOptions" not in replaying_test(REPORT, module="m", scenario="grows")


def test_report_contains_no_object_data() -> None:
    told = [str(REPORT), repr(REPORT), report_page(REPORT, title=""), str(report_fields(REPORT))]
    assert "planted" not in str(told)


def test_summary_contains_counts() -> None:
    assert REPORT.summary == "9 runs over 2 writes: 3 failures"
    assert msgspec.structs.replace(REPORT, failures=FAILURES[:1]).summary.endswith("1 failure")
