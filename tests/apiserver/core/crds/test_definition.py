from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from deltaloop.apiserver.core.crds.conversion_webhook import ConversionWebhook
from deltaloop.apiserver.core.crds.definition import (
    crd_resources,
    crd_status,
    default_crd,
    is_established,
    storage_version,
)
from deltaloop.apiserver.core.crds.validation import validate_crd
from deltaloop.apiserver.core.served_resource import NAME_COLUMN, ScalePaths, TableColumn
from tests.apiserver.core.built_in import BUILT_IN_RESOURCES
from tests.apiserver.core.custom_resources import GROUP, foo_crd, version


def _causes(crd: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, str]:
    return {error.field: error.text for error in validate_crd(default_crd(crd), old=old)}


def _changed(*path: str | int, value: Any) -> dict[str, Any]:
    crd = foo_crd()
    target: Any = crd
    for step in path[:-1]:
        target = target[step]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return crd


def _established(crd: dict[str, Any], *, now: float = 0) -> dict[str, Any]:
    crd = default_crd(crd)
    return {**crd, "status": crd_status(crd, BUILT_IN_RESOURCES, now=now)}


def test_defaults_set_names_and_conversion_without_changing_the_argument() -> None:
    crd = foo_crd()
    before = copy.deepcopy(crd)
    result = default_crd(crd)
    assert result["spec"]["names"] == {"kind": "Foo", "plural": "foos", "singular": "foo", "listKind": "FooList"}
    assert result["spec"]["conversion"] == {"strategy": "None"}
    assert crd == before
    assert default_crd(result) == result


def test_explicit_values_are_kept() -> None:
    crd = foo_crd()
    crd["spec"]["names"] |= {"singular": "fooey", "listKind": "Fooes"}
    names = default_crd(crd)["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("fooey", "Fooes")


def test_valid_crd_has_no_causes() -> None:
    assert validate_crd(default_crd(foo_crd())) == []


@pytest.mark.parametrize(
    ("crd", "field", "message"),
    [
        (
            _changed("metadata", "name", value="bars.x.io"),
            "metadata.name",
            'Invalid value: "bars.x.io": must be spec.names.plural+"."+spec.group',
        ),
        (_changed("spec", "group", value=None), "spec.group", "Required value"),
        (
            foo_crd(group="nodots"),
            "spec.group",
            'Invalid value: "nodots": should be a domain with at least one dot',
        ),
        (_changed("spec", "scope", value=None), "spec.scope", "Required value"),
        (
            _changed("spec", "scope", value="Galaxy"),
            "spec.scope",
            'Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"',
        ),
        (_changed("spec", "names", "kind", value=None), "spec.names.kind", "Required value"),
        (
            _changed("spec", "versions", value=[]),
            "spec.versions",
            "Invalid value: []: must have exactly one version marked as storage version",
        ),
        (
            foo_crd(version("v1"), version("v2")),
            "spec.versions",
            'Invalid value: ["v1","v2"]: must have exactly one version marked as storage version',
        ),
        (
            foo_crd(version("v1", storage=False)),
            "spec.versions",
            'Invalid value: ["v1"]: must have exactly one version marked as storage version',
        ),
        (
            foo_crd(version("v1"), version("v1", storage=False)),
            "spec.versions",
            'Invalid value: ["v1","v1"]: must contain unique version names',
        ),
        (
            _changed("spec", "versions", 0, "schema", value=None),
            "spec.versions[0].schema.openAPIV3Schema",
            "Required value",
        ),
        (
            _changed("spec", "versions", 0, "schema", "openAPIV3Schema", value={}),
            "spec.validation.openAPIV3Schema.type",
            "Required value: must not be empty at the root",
        ),
        (
            _changed("spec", "versions", 0, "schema", "openAPIV3Schema", "type", value="array"),
            "spec.validation.openAPIV3Schema.type",
            'Invalid value: "array": must be object at the root',
        ),
        (
            foo_crd(version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}])),
            "spec.additionalPrinterColumns[0].type",
            'Invalid value: "text": must be one of boolean,date,integer,number,string',
        ),
        (
            foo_crd(version(additionalPrinterColumns=[{"name": "A", "type": "string"}])),
            "spec.additionalPrinterColumns[0].JSONPath",
            "Required value",
        ),
        (
            foo_crd(version(subresources={"scale": {"statusReplicasPath": ".status.replicas"}})),
            "spec.subresources.scale.specReplicasPath",
            "Required value",
        ),
        (
            foo_crd(
                version(subresources={"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".status.b"}})
            ),
            "spec.subresources.scale.specReplicasPath",
            'Invalid value: ".status.a": should be a json path under .spec',
        ),
        (
            _changed("spec", "conversion", value={"strategy": "Guess"}),
            "spec.conversion.strategy",
            'Unsupported value: "Guess": supported values: "None", "Webhook"',
        ),
    ],
)
def test_invalid_fields_have_causes(crd: dict[str, Any], field: str, message: str) -> None:
    assert _causes(crd)[field] == message


def test_names_must_be_dns_labels() -> None:
    crd = _changed("spec", "names", "shortNames", value=["fo", "No good"])
    causes = _causes(crd)
    assert list(causes) == ["spec.names.shortNames[1]"]
    assert causes["spec.names.shortNames[1]"].startswith('Invalid value: "No good": a DNS-1035 label')


def test_protected_groups_need_the_annotation() -> None:
    crd = foo_crd(group="foo.k8s.io")
    assert list(_causes(crd)) == ["metadata.annotations[api-approved.kubernetes.io]"]
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, testing"}
    assert not _causes(crd)


def test_conversion_webhook_is_valid_for_any_number_of_versions() -> None:
    client = {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]}
    webhook: dict[str, Any] = {"strategy": "Webhook", "webhook": client}
    one, two = foo_crd(), foo_crd(version("v1"), version("v2", storage=False))
    one["spec"]["conversion"] = two["spec"]["conversion"] = webhook
    assert not _causes(one)
    assert not _causes(two)


def test_objects_without_version_use_the_oldest_version() -> None:
    client = {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v9", "v1beta1", "v1"]}
    crd = default_crd(foo_crd(version("v1", storage=False), version("v2")))
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": client}
    crd["status"] = {**crd_status(crd, (), now=0.0), "storedVersions": ["v1", "v2"]}
    webhook = crd_resources(crd)[0].codec.webhook
    assert isinstance(webhook, ConversionWebhook)
    group = crd["spec"]["group"]
    assert (webhook.oldest, webhook.stored, webhook.review_version) == (f"{group}/v1", f"{group}/v2", "v1beta1")
    assert crd_resources(crd)[1].codec.webhook == webhook
    crd["spec"]["conversion"]["webhook"] = {**client, "clientConfig": {"url": "https://y"}}
    assert crd_resources(crd)[0].codec.webhook != webhook


@pytest.mark.parametrize("value", [None, 5, "x", [], {"names": 3, "versions": [7]}])
def test_malformed_spec_gives_causes(value: object) -> None:
    crd = {"metadata": {"name": "x"}, "spec": value}
    assert _causes(crd)


def test_new_crd_is_accepted_and_established() -> None:
    crd = _established(foo_crd(), now=5)
    assert is_established(crd)
    assert crd["status"] == {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": "1970-01-01T00:00:05Z",
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": "1970-01-01T00:00:05Z",
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"},
        "storedVersions": ["v1"],
    }


def test_status_is_unchanged_without_changes() -> None:
    crd = _established(foo_crd(), now=5)
    assert crd_status(crd, BUILT_IN_RESOURCES, now=99) == crd["status"]


def test_other_conditions_are_kept() -> None:
    crd = _established(foo_crd())
    foreign = {"type": "KubernetesAPIApprovalPolicyConformant", "status": "True"}
    crd["status"]["conditions"].insert(0, foreign)
    assert crd_status(crd, (), now=9)["conditions"][2:] == [foreign]


@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        ({"kind": "Foo"}, "ListKindConflict", '"FooList" is already in use'),
        ({"kind": "Foo", "listKind": "Fooes"}, "KindConflict", '"Foo" is already in use'),
        ({"kind": "Bar", "listKind": "FooList"}, "ListKindConflict", '"FooList" is already in use'),
        ({"kind": "Bar", "singular": "foo"}, "SingularConflict", '"foo" is already in use'),
        ({"kind": "Bar", "shortNames": ["b", "foos"]}, "ShortNamesConflict", '"foos" is already in use'),
    ],
)
def test_name_of_another_resource_is_not_accepted(names: dict[str, Any], reason: str, message: str) -> None:
    others = crd_resources(_established(foo_crd()))
    rival = foo_crd(plural="bars")
    rival["spec"]["names"] |= names
    rival = default_crd(rival)
    status = crd_status(rival, others, now=0)
    accepted, established = status["conditions"]
    assert (accepted["status"], accepted["reason"], accepted["message"]) == ("False", reason, message)
    assert (established["status"], established["reason"]) == ("False", "NotAccepted")
    assert crd_resources({**rival, "status": status}) == ()


def test_same_name_in_another_group_is_accepted() -> None:
    others = crd_resources(_established(foo_crd(group="other.example.com")))
    assert crd_status(default_crd(foo_crd()), others, now=0)["conditions"][0]["status"] == "True"


def test_established_crd_keeps_serving_its_old_names() -> None:
    others = crd_resources(_established(foo_crd(kind="Taken", plural="takens")))
    crd = _established(foo_crd())
    crd["spec"]["names"] |= {"listKind": "TakenList", "shortNames": ["fo"]}
    status = crd_status(crd, others, now=0)
    assert [item["status"] for item in status["conditions"]] == ["False", "True"]
    assert status["acceptedNames"]["listKind"] == "FooList"
    assert status["acceptedNames"]["shortNames"] == ["fo"]
    (served,) = crd_resources({**crd, "status": status})
    assert served.list_kind == "FooList"


def test_new_storage_version_is_added_to_stored_versions() -> None:
    crd = _established(foo_crd())
    crd["spec"]["versions"] = [version("v1", storage=False), version("v2")]
    assert crd_status(crd, (), now=0)["storedVersions"] == ["v1", "v2"]
    assert storage_version(crd) == "v2"


def test_immutable_fields_of_an_established_crd() -> None:
    old = _established(foo_crd())
    changed = copy.deepcopy(old)
    changed["spec"]["scope"] = "Cluster"
    changed["spec"]["names"]["kind"] = "Fooo"
    changed["spec"]["versions"] = [version("v2")]
    causes = _causes(changed, old)
    assert causes["spec.scope"] == 'Invalid value: "Cluster": field is immutable'
    assert causes["spec.names.kind"] == 'Invalid value: "Fooo": field is immutable'
    assert causes["status.storedVersions[0]"].startswith('Invalid value: "v1": missing from spec.versions; v1 was')
    fresh = default_crd(foo_crd())
    assert not _causes({**fresh, "spec": {**fresh["spec"], "scope": "Cluster"}}, fresh)


def test_served_version_has_all_settings_of_the_crd() -> None:
    crd = foo_crd(
        version(
            subresources={
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                },
            },
            additionalPrinterColumns=[
                {"name": "Ready", "type": "string", "jsonPath": ".status.ready", "description": "d", "priority": 1}
            ],
            selectableFields=[{"jsonPath": ".spec.color"}],
            deprecated=True,
            deprecationWarning="use v2",
        )
    )
    crd["spec"]["names"] |= {"shortNames": ["fo"], "categories": ["all"]}
    (served,) = crd_resources(_established(crd))
    assert (served.type.group, served.type.version, served.type.kind, served.type.plural, served.type.namespaced) == (
        GROUP,
        "v1",
        "Foo",
        "foos",
        True,
    )
    assert (served.singular, served.list_kind, served.short_names, served.categories) == (
        "foo",
        "FooList",
        ("fo",),
        ("all",),
    )
    assert served.codec.says_kind
    assert served.flags.generation
    assert served.status
    assert not served.flags.unconditional_update
    assert served.scale_paths == ScalePaths(label_selector=".status.selector", default=None)
    assert served.columns == (NAME_COLUMN, TableColumn("Ready", "string", ".status.ready", "d", "", 1))
    assert served.field_labels == ("spec.color",)
    assert served.deprecation == "use v2"
    assert msgspec.json.decode(served.schema.source) == crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_cluster_scope_and_no_subresources() -> None:
    crd = foo_crd()
    crd["spec"]["scope"] = "Cluster"
    (served,) = crd_resources(_established(crd))
    assert not served.type.namespaced
    assert not served.status
    assert served.scale_paths is None
    assert served.scale_paths is None
