"""Our own corpus has what the public one has, and is what ``own/build.py`` makes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from tests.apiserver.serving import serving

from lab.corpus.__main__ import ANSWERS
from lab.corpus.counting import readable
from lab.corpus.features import FILE, edges_of, edges_of_all, pairs_of, read
from lab.corpus.own.build import FOLDER, files, node
from lab.corpus.projects import OWN_PLAN, ProjectRun
from lab.corpus.reading import Project, read_folder
from lab.corpus.recording import Recording
from lab.corpus.schemas import kinds_of
from lab.corpus.sending import LiveServer, Sender


def test_corpus_files_are_up_to_date() -> None:
    for name, text in files().items():
        assert (FOLDER / name).read_text() == text, (
            f"{name}: run python -m lab.corpus.own.build, then make -C lab corpus-record"
        )


def test_corpus_covers_all_feature_pairs_of_public_schemas() -> None:
    wanted = read(FILE)
    ours = edges_of_all(read_folder(FOLDER))
    assert pairs_of(wanted) - pairs_of(ours) == set()
    assert {feature for edge in wanted for feature in edge[0] | edge[2]} <= {
        feature for edge in ours for feature in edge[0] | edge[2]
    }


def test_missing_feature_pair_is_detected() -> None:
    """Of most pairs there is one node only: without its CRD they are missing."""
    [shapes] = [project for project in read_folder(FOLDER) if project.name == "shapes"]
    wanted = pairs_of(read(FILE))
    for crd in shapes.crds:
        others = [kinds_of(each.object)[0].schema for each in shapes.crds if each is not crd]
        ours = pairs_of(edge for schema in others for edge in edges_of(schema))
        if wanted - ours:
            return
    raise AssertionError("each pair is in two CRDs at least")


def test_generated_schema_has_requested_features() -> None:
    known = {feature for outer, _, inner in read(FILE) for feature in outer | inner}
    texts = [each for each in known if each in ("maxLength", "minLength", "pattern", "default: string")]
    for number in range(len(texts) + 1):
        for chosen in itertools.combinations(sorted(texts), number):
            made = node(frozenset({"type: string", *chosen}))
            assert made["type"] == "string"
            if "default" in made:
                assert len(made["default"]) >= made.get("minLength", 0)


@pytest.mark.real_time
async def test_part_of_corpus_matches_recorded_responses() -> None:
    """The whole is ``make -C lab corpus-own``."""
    [whole] = [project for project in read_folder(FOLDER) if project.name == "extras"]
    few = ("Extra", "Column", "Old")
    crds = [crd for crd in whole.crds if crd.object["spec"]["names"]["kind"] in few]
    async with serving() as one:
        live = LiveServer(one.call)
        sender = Sender(live, Recording.read(ANSWERS))
        plan = replace(OWN_PLAN, every=20)
        await ProjectRun(sender, Project(whole.name, crds, whole.samples), plan, lives=[live]).run()
    counts = sender.counts
    assert counts.shortcomings() == [], readable(counts.in_order())
    assert counts.total("all").requests >= 100
    assert counts.total("mutations").requests >= 20
