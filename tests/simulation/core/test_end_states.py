"""Two ends compared."""

from __future__ import annotations

from typing import Any

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.simulation.core.end_states import differences, end_state, learnt

CONFIG_MAP = "v1/ConfigMap"


def config_map(name: str, uid: str = "", *, data: Any = None, **metadata: Any) -> Resource:
    fields = {"metadata": {"namespace": "default", "name": name, "uid": uid, **metadata}, "data": data or {}}
    return Resource.from_dict(fields, kinds.CONFIG_MAP)


def shown(wanted: list[Resource], found: list[Resource], **options: Any) -> list[str]:
    return [str(each) for each in differences(end_state(wanted), end_state(found), **options)]


def test_what_differs_between_any_two_runs_is_no_difference() -> None:
    one = config_map("a", "u1", resourceVersion="5", creationTimestamp="2026-01-01T00:00:00Z", managedFields=[{}])
    other = config_map("a", "u2", resourceVersion="9", creationTimestamp="2026-01-01T00:07:00Z", generation=3)
    assert not shown([one], [other])


def test_fields_that_differ_are_named() -> None:
    wanted = config_map("a", data={"size": "2", "kept": "x"})
    assert shown([wanted], [config_map("a", data={"size": "1", "kept": "x"})]) == [
        'v1/ConfigMap default/a: data.size is "1", and should be "2"'
    ]
    assert shown([wanted], [config_map("a", data={"kept": "x"})]) == [
        'v1/ConfigMap default/a: data.size is <gone>, and should be "2"'
    ]


def test_objects_that_are_missing_or_left_over_are_named() -> None:
    assert shown([config_map("a")], []) == ["v1/ConfigMap default/a is missing"]
    assert shown([], [config_map("a")]) == ["v1/ConfigMap default/a is there, and should not be"]


def test_owners_are_compared_by_what_they_are_and_not_by_their_uids() -> None:
    def owned(uid: str, owner: str) -> list[Resource]:
        return [config_map("owner", uid), config_map("child", f"{uid}c", ownerReferences=[{"name": "x", "uid": owner}])]

    assert not shown(owned("u1", "u1"), owned("u2", "u2"))
    assert shown(owned("u1", "u1"), owned("u2", "of somebody else")), "it belongs to another object now"


def test_instants_are_no_difference_but_their_absence_is() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09.5Z"
    assert not shown([config_map("a", data={"at": early})], [config_map("a", data={"at": late})])
    assert shown([config_map("a", data={"at": early})], [config_map("a", data={"at": "never"})])


def test_names_that_the_server_made_up_are_compared_by_their_beginning() -> None:
    one = [config_map("job-x7f2a", "u1", generateName="job-"), config_map("last", data={"job": "job-x7f2a"})]
    other = [config_map("job-q9z1k", "u2", generateName="job-"), config_map("last", data={"job": "job-q9z1k"})]
    assert not shown(one, other)
    assert shown(one, [*other, config_map("job-zzzzz", "u3", generateName="job-")]), "there are two now"


def test_a_status_speaks_of_the_present_spec_however_often_that_was_changed() -> None:
    def observed(generation: int, seen: int) -> list[Resource]:
        fields = {"metadata": {"name": "a", "generation": generation}, "status": {"observedGeneration": seen}}
        return [Resource.from_dict(fields, kinds.DEPLOYMENT)]

    assert not shown(observed(2, 2), observed(4, 4))
    assert not shown(observed(2, 1), observed(4, 2))
    (told,) = shown(observed(2, 2), observed(4, 3))
    assert told.endswith('is "<an earlier generation>", and should be "<the present generation>"')


def test_items_of_a_list_are_compared_one_by_one() -> None:
    one, other = (config_map("a", finalizers=["a/x", last]) for last in ("a/y", "a/z"))
    assert shown([one], [other]) == ['v1/ConfigMap default/a: metadata.finalizers.1 is "a/z", and should be "a/y"']


def test_what_runs_without_faults_do_not_agree_on_is_ignored_and_nothing_else() -> None:
    runs = [end_state([config_map("a", data={"password": word, "user": "me"})]) for word in ("x", "y", "z")]
    ignored = learnt(runs)
    assert ignored == {(CONFIG_MAP, "default/a", "data", "password")}
    wrong = end_state([config_map("a", data={"password": "q", "user": "you"})])
    assert [each.place[-1] for each in differences(runs[0], wrong, ignored=ignored)] == ["user"]
