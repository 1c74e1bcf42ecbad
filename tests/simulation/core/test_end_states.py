"""Two ends compared."""

from __future__ import annotations

from typing import Any

from deltaloop.api import kinds
from deltaloop.api.resource import Resource
from deltaloop.simulation.core.end_states import (
    differences,
    drawn_names,
    end_state,
    learnt,
    without_drawn_names,
)

CONFIG_MAP = "v1/ConfigMap"


def config_map(name: str, uid: str = "", *, data: Any = None, **metadata: Any) -> Resource:
    fields = {"metadata": {"namespace": "default", "name": name, "uid": uid, **metadata}, "data": data or {}}
    return Resource.from_dict(fields, kinds.CONFIG_MAP)


def shown(wanted: list[Resource], found: list[Resource], **options: Any) -> list[str]:
    return [str(each) for each in differences(end_state(wanted), end_state(found), **options)]


def test_volatile_metadata_is_ignored() -> None:
    one = config_map("a", "u1", resourceVersion="5", creationTimestamp="2026-01-01T00:00:00Z", managedFields=[{}])
    other = config_map("a", "u2", resourceVersion="9", creationTimestamp="2026-01-01T00:07:00Z", generation=3)
    assert not shown([one], [other])


def test_different_fields_are_reported() -> None:
    wanted = config_map("a", data={"size": "2", "kept": "x"})
    assert shown([wanted], [config_map("a", data={"size": "1", "kept": "x"})]) == [
        'v1/ConfigMap default/a: data.size must be "2", got "1"'
    ]
    assert shown([wanted], [config_map("a", data={"kept": "x"})]) == [
        'v1/ConfigMap default/a: data.size must be "2", got <gone>'
    ]


def test_missing_and_extra_objects_are_reported() -> None:
    assert shown([config_map("a")], []) == ["v1/ConfigMap default/a is missing"]
    assert shown([], [config_map("a")]) == ["v1/ConfigMap default/a exists, but must not exist"]


def test_owners_are_compared_by_identity_not_uid() -> None:
    def owned(uid: str, owner: str) -> list[Resource]:
        return [config_map("owner", uid), config_map("child", f"{uid}c", ownerReferences=[{"name": "x", "uid": owner}])]

    assert not shown(owned("u1", "u1"), owned("u2", "u2"))
    assert shown(owned("u1", "u1"), owned("u2", "of somebody else")), "it belongs to another object now"


def test_timestamps_are_equal_unless_missing() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09.5Z"
    assert not shown([config_map("a", data={"at": early})], [config_map("a", data={"at": late})])
    assert shown([config_map("a", data={"at": early})], [config_map("a", data={"at": "never"})])


def test_generated_names_are_compared_by_prefix() -> None:
    one = [config_map("job-x7f2a", "u1", generateName="job-"), config_map("last", data={"job": "job-x7f2a"})]
    other = [config_map("job-q9z1k", "u2", generateName="job-"), config_map("last", data={"job": "job-q9z1k"})]
    assert not shown(one, other)
    assert shown(one, [*other, config_map("job-zzzzz", "u3", generateName="job-")]), "there are two now"


def test_observed_generation_is_compared_relatively() -> None:
    def observed(generation: int, seen: int) -> list[Resource]:
        fields = {"metadata": {"name": "a", "generation": generation}, "status": {"observedGeneration": seen}}
        return [Resource.from_dict(fields, kinds.DEPLOYMENT)]

    assert not shown(observed(2, 2), observed(4, 4))
    assert not shown(observed(2, 1), observed(4, 2))
    (told,) = shown(observed(2, 2), observed(4, 3))
    assert told.endswith('must be "<the present generation>", got "<an earlier generation>"')


def test_list_items_are_compared_by_position() -> None:
    one, other = (config_map("a", finalizers=["a/x", last]) for last in ("a/y", "a/z"))
    assert shown([one], [other]) == ['v1/ConfigMap default/a: metadata.finalizers.1 must be "a/y", got "a/z"']


def test_map_lists_and_sets_are_compared_without_order() -> None:
    owned: dict[str, Any] = {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"a"': {}}},
        "f:data": {
            "f:ports": {'k:{"port":1,"protocol":"TCP"}': {"f:name": {}}},
            "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:inner": {'k:{"id":1}': {}}}},
        },
    }

    def ordered(step: int, *, status: str = "True", plain: tuple[int, ...] = (1, 2)) -> Resource:
        inner = [{"id": 1}, {"id": 2}][::step]
        data = {
            "conditions": [{"type": "Ready", "status": status, "inner": inner}, {"type": "Synced"}][::step],
            "ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}][::step],
            "plain": plain,
        }
        return config_map("a", data=data, finalizers=["a", "b"][::step], managedFields=[{"fieldsV1": owned}])

    assert not shown([ordered(1)], [ordered(-1)])
    assert shown([ordered(1)], [ordered(-1, status="False")]) == [
        'v1/ConfigMap default/a: data.conditions.0.status must be "True", got "False"'
    ]
    assert len(shown([ordered(1)], [ordered(1, plain=(2, 1))])) == 2


def test_fields_that_differ_without_faults_are_ignored() -> None:
    runs = [end_state([config_map("a", data={"password": word, "user": "me"})]) for word in ("x", "y", "z")]
    ignored = learnt(runs)
    assert ignored == {(CONFIG_MAP, "default/a", "data", "password")}
    wrong = end_state([config_map("a", data={"password": "q", "user": "you"})])
    assert [each.place[-1] for each in differences(runs[0], wrong, ignored=ignored)] == ["user"]


def generated(suffix: str, *, uid: str, data: dict[str, str]) -> Resource:
    return config_map(f"job-{suffix}", uid, data=data, generateName="job-")


def test_siblings_with_generated_names_are_matched_by_content() -> None:
    one = [generated("aaaaa", uid="u1", data={"for": "x"}), generated("bbbbb", uid="u2", data={"for": "y"})]
    other = [generated("ccccc", uid="u3", data={"for": "y"}), generated("ddddd", uid="u4", data={"for": "x"})]
    assert not shown(one, other)
    assert shown(one, [*other, generated("eeeee", uid="u5", data={"for": "z"})]) == [
        "v1/ConfigMap default/job-<3> exists, but must not exist"
    ]


def test_secret_values_are_not_shown() -> None:
    def secret(value: str) -> Resource:
        fields = {"metadata": {"namespace": "default", "name": "a"}, "data": {"word": value}}
        return Resource.from_dict(fields, kinds.SECRET)

    def environment(value: str) -> Resource:
        return config_map("a", data={"env": [{"name": "DB_PASSWORD", "value": value}], "password": value})

    for make in (secret, environment):
        wanted, found = end_state([make("planted-one")]), end_state([make("planted-two")])
        told = differences(wanted, found)
        assert told
        assert "planted" not in f"{told} {[*map(str, told)]} {wanted} {found!r}"
        assert "planted" not in str(differences(wanted, end_state([])))
    assert shown([secret("planted-one")], [secret("planted-two")]) == [
        'v1/Secret default/a: data.word has a different redacted value: "<redacted>"'
    ]


def drawn(names: dict[str, str], *static: Resource) -> list[Resource]:
    """Return what a program has made that names each volume of its own by chance, and writes the name down."""
    made = [config_map(f"{owner}-{end}", f"u-{end}", data={"of": owner}) for owner, end in names.items()]
    notes = [config_map(owner, data={"volume": f"{owner}-{end}"}) for owner, end in names.items()]
    return [*made, *notes, *static]


def test_random_names_of_program_are_compared_by_prefix() -> None:
    runs = [end_state(drawn({"a": one, "my-b": other})) for one, other in (("5ef", "x1"), ("5a2", "y2"), ("c33", "z3"))]
    names = drawn_names(runs)
    assert names == {(CONFIG_MAP, "default/a-"), (CONFIG_MAP, "default/my-b-")}

    def told(wanted: list[Resource], found: list[Resource]) -> list[str]:
        states = [without_drawn_names(end_state(each), names) for each in (wanted, found)]
        return [str(each) for each in differences(*states)]

    before = drawn({"a": "5ef", "my-b": "x1"})
    assert not told(before, drawn({"a": "777", "my-b": "888"}))
    left_over = config_map("a-999", data={"of": "a"})
    assert told(before, drawn({"a": "777", "my-b": "888"}, left_over)) == [
        "v1/ConfigMap default/a-<2> exists, but must not exist"
    ]
    wrong = [*drawn({"a": "777", "my-b": "888"})[:2], config_map("a", data={"volume": "my-b-888"}), before[3]]
    assert told(before, wrong) == [
        'v1/ConfigMap default/a: data.volume must be "a-", got "my-b-"',
        'v1/ConfigMap default/my-b: data.volume must be "my-b-", got "my-b-x1"',
    ], "one that is not there is no name"


def test_names_without_common_prefix_or_namespace_are_not_random() -> None:
    assert not drawn_names([end_state([config_map("x1")]), end_state([config_map("y2")])])
    assert not drawn_names([end_state([config_map("a-1")]), end_state([])])
    elsewhere = Resource.from_dict({"metadata": {"namespace": "other", "name": "a-2"}}, kinds.CONFIG_MAP)
    assert not drawn_names([end_state([config_map("a-1")]), end_state([elsewhere])])
    state = end_state([config_map("a-1")])
    assert without_drawn_names(state, frozenset()) is state
