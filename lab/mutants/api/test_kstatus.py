"""Mistakes seeded into the code, each of which the tests of ``tests.api.test_kstatus`` must find."""

from __future__ import annotations

import pytest
from tests.api.test_kstatus import wrong_verdicts

from deltaloop.api import kstatus
from lab.mutants.edited import edited_module

SEEDED = [
    ("observed != generation", "observed < generation"),
    ("if seen.count(field) < wanted:", "if seen.count(field) <= wanted:"),
    ("if extra > 0 else", "if extra > 1 else"),
    ('seen.status.get("currentRevision") != seen', "False and seen"),
    ("max(0, wanted - partition)", "wanted"),
    ("partition >= 0:", "partition > 2:"),
    ('if seen.condition("Available") is None:', "if False:"),
    ("is_outdated(seen.obj, ready)", "False"),
    ("if not is_outdated(obj, each):", "if True:"),
    ("(group, obj.kind)", '("", obj.kind)'),
    ('_less(seen, updated, ("Less', '_less(seen, 0, ("Less'),
    ('!= "NewReplicaSetAvailable"', '== "Old"'),
    ('if each["type"] == "Reconciling" else', "if True else"),
    ("reason if is_reason(reason) else", "reason if reason else"),
    ('!= "Unschedulable"', '== ""'),
    ('_reason(held) != "Installing"', "True"),
    ('== "CrashLoopBackOff"', '!= ""'),
    ("wanted < 0:", "wanted <= 0:"),
]


@pytest.mark.parametrize(("standing", "wrong"), SEEDED)
def test_wrong_rule_is_detected(standing: str, wrong: str) -> None:
    assert wrong_verdicts(edited_module(kstatus, (standing, wrong))["object_status"])
