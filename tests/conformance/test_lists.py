"""Resource versions, pages and selectors of get and list.

Source: Kubernetes documentation, "API Concepts"; KEP-365 (paginated lists); KEP-2340 and KEP-4988 (lists from cache).
"""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.conformance.target import Api, conformance, pod

CONFIG_MAP_FIELDS = "metadata.name", "metadata.namespace"


async def _three(api: Api) -> list[str]:
    """Make c1 to c3; return the resource version after each."""
    return [(await api.config_map(f"c{number}")).revision for number in (1, 2, 3)]


def _token(answer: Any) -> dict[str, Any]:
    text = answer.json["metadata"]["continue"]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return decoded


@conformance("resource versions: an object's is the one that its write answered with")
async def test_get_equals_create_response(api: Api) -> None:
    made = await api.config_map("a", {"k": "v"})
    assert (await api.get(f"{api.config_maps}/a")).json == made.json


@conformance("resource versions: a write that changes nothing keeps the version")
async def test_no_op_put_keeps_the_version(api: Api) -> None:
    made = (await api.config_map("a", {"k": "v"})).json
    again = await api.put(f"{api.config_maps}/a", made)
    assert (again.status, again.revision) == (200, made["metadata"]["resourceVersion"])


@conformance("resource versions: a patch that changes nothing keeps the version")
async def test_no_op_patch_keeps_the_version(api: Api) -> None:
    made = await api.config_map("a", {"k": "v"})
    again = await api.patch(f"{api.config_maps}/a", {"data": {"k": "v"}})
    assert (again.status, again.revision) == (200, made.revision)


@conformance("resource versions: one counter over all resources")
async def test_versions_grow_over_resources(api: Api) -> None:
    first = await api.config_map("a")
    second = await api.created(f"{api.core}/secrets", {"metadata": {"name": "s"}})
    third = await api.patch(f"{api.config_maps}/a", {"data": {"k": "v"}})
    assert int(first.revision) < int(second.revision) < int(third.revision)


@conformance("resource versions: a list's is the store's, at least that of any object in it")
async def test_list_has_resource_version_of_store(api: Api) -> None:
    await api.config_map("a")
    later = await api.created(f"{api.core}/secrets", {"metadata": {"name": "s"}})
    listed = await api.get(api.config_maps)
    assert int(listed.revision) >= int(later.revision)


@conformance("resource versions: get at any version answers", ("0 is any", "0"), ("1 is not older than 1", "1"))
async def test_get_at_an_old_version(api: Api, version: str) -> None:
    await api.config_map("a")

    async def answered() -> bool:
        return (await api.get(f"{api.config_maps}/a?resourceVersion={version}")).status == 200

    await api.eventually(answered)


@conformance("resource versions: get not older than the newest write sees it")
async def test_get_not_older_than(api: Api) -> None:
    made = await api.config_map("a", {"k": "1"})
    changed = await api.patch(f"{api.config_maps}/a", {"data": {"k": "2"}})
    assert changed.revision != made.revision
    found = await api.get(f"{api.config_maps}/a?resourceVersion={changed.revision}")
    assert found.json["data"] == {"k": "2"}


@conformance(
    "resource versions: a version from the future is 504 after some seconds, with the cause and a time to wait",
    ("get", "configmaps/a?resourceVersion={}"),
    ("list", "configmaps?resourceVersion={}"),
    ("list not older than", "configmaps?resourceVersion={}&resourceVersionMatch=NotOlderThan"),
)
async def test_future_resource_version(api: Api, path: str) -> None:
    made = await api.config_map("a")
    wanted = int(made.revision) + 1_000_000
    answer = await api.get(f"{api.core}/{path.format(wanted)}")
    assert answer.refuses(504, "Timeout").startswith(f"Timeout: Too large resource version: {wanted}, current: ")
    details = answer.json["details"]
    assert details["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert details["retryAfterSeconds"] == 1
    assert answer.headers["Retry-After"] == "1"


@conformance("resource versions: exactly a version from the future is 504", min_version="1.34")
async def test_exact_future_resource_version(api: Api) -> None:
    made = await api.config_map("a")
    wanted = int(made.revision) + 1_000_000
    answer = await api.get(f"{api.config_maps}?resourceVersion={wanted}&resourceVersionMatch=Exact")
    assert answer.refuses(504, "Timeout").startswith(f"Timeout: Too large resource version: {wanted}, current: ")


@conformance("resource versions: a get with a version that is no number is 500 without a reason")
async def test_get_with_a_bad_version(api: Api) -> None:
    await api.config_map("a")
    answer = await api.get(f"{api.config_maps}/a?resourceVersion=abc")
    message = 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'
    assert answer.refuses(500, "") == message


@conformance("resource versions: a list with a version that is no number is 400", min_version="1.31")
async def test_list_with_a_bad_version(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}?resourceVersion=abc")
    assert "invalid resource version" in answer.refuses(400, "BadRequest")


@conformance("resource versions: a list at an exact version has the state of then, and that version")
async def test_list_exactly(api: Api) -> None:
    versions = await _three(api)
    await api.delete(f"{api.config_maps}/c1")
    listed = await api.get(f"{api.config_maps}?resourceVersion={versions[1]}&resourceVersionMatch=Exact")
    assert (listed.names, listed.revision) == (["c1", "c2"], versions[1])


@conformance("resource versions: a list not older than a version shows what came later")
async def test_list_not_older_than(api: Api) -> None:
    versions = await _three(api)
    listed = await api.get(f"{api.config_maps}?resourceVersion={versions[2]}&resourceVersionMatch=NotOlderThan")
    assert listed.names == ["c1", "c2", "c3"]
    assert int(listed.revision) >= int(versions[2])


@conformance("resource versions: a version with a limit and no match is exact")
async def test_a_version_with_a_limit_is_exact(api: Api) -> None:
    versions = await _three(api)
    listed = await api.get(f"{api.config_maps}?resourceVersion={versions[1]}&limit=5")
    assert (listed.names, listed.revision) == (["c1", "c2"], versions[1])


@conformance("resource versions: a version without a limit and a match is not older than")
async def test_resource_version_without_match_is_not_older_than(api: Api) -> None:
    versions = await _three(api)
    listed = await api.get(f"{api.config_maps}?resourceVersion={versions[2]}")
    assert listed.names == ["c1", "c2", "c3"]


@conformance("resource versions: with version 0 the limit is ignored")
async def test_version_0_ignores_the_limit(api: Api) -> None:
    versions = await _three(api)

    async def caught_up() -> bool:
        listed = await api.get(f"{api.config_maps}?resourceVersion=0")
        return int(listed.revision) >= int(versions[2])

    await api.eventually(caught_up)
    listed = await api.get(f"{api.config_maps}?resourceVersion=0&limit=1")
    assert listed.names == ["c1", "c2", "c3"]
    assert "continue" not in listed.json["metadata"]


@conformance(
    "resourceVersionMatch: refused with 422",
    (
        "without a resourceVersion",
        "resourceVersionMatch=Exact",
        "FieldValueForbidden",
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
    (
        "Exact with 0",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "FieldValueForbidden",
        'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
    (
        "another value",
        "resourceVersion=1&resourceVersionMatch=Newest",
        "FieldValueNotSupported",
        'Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
    ),
)
async def test_resource_version_match_refused(api: Api, query: str, reason: str, message: str) -> None:
    answer = await api.get(f"{api.config_maps}?{query}")
    assert answer.refuses(422, "Invalid").startswith('ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: ')
    details = answer.json["details"]
    assert (details["kind"], details["group"]) == ("ListOptions", "meta.k8s.io")
    assert details["causes"] == [{"reason": reason, "message": message, "field": "resourceVersionMatch"}]


@conformance("resourceVersionMatch: not with continue")
async def test_resource_version_match_with_continue(api: Api) -> None:
    await _three(api)
    page = await api.get(f"{api.config_maps}?limit=1")
    query = f"continue={page.json['metadata']['continue']}&resourceVersion=1&resourceVersionMatch=Exact"
    answer = await api.get(f"{api.config_maps}?{query}")
    assert "resourceVersionMatch is forbidden when continue is provided" in answer.refuses(422, "Invalid")


@conformance("KEP-3157: sendInitialEvents is for watches only", min_version="1.27")
async def test_send_initial_events_on_a_list(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    assert "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list" in answer.refuses(422, "Invalid")


@conformance("KEP-365: a page has a token and the number of those that remain")
async def test_the_first_page(api: Api) -> None:
    await _three(api)
    page = await api.get(f"{api.config_maps}?limit=1")
    assert page.names == ["c1"]
    assert page.json["metadata"]["remainingItemCount"] == 2
    token = _token(page)
    assert (token["v"], token["start"], str(token["rv"])) == ("meta.k8s.io/v1", "/c1\u0000", page.revision)


@conformance("KEP-365: the token of a list over namespaces starts after namespace and name")
async def test_continue_token_across_namespaces(api: Api) -> None:
    await api.created(f"{api.core}/podtemplates", {"metadata": {"name": "a"}, "template": {"spec": pod("x")["spec"]}})
    await api.created(f"{api.core}/podtemplates", {"metadata": {"name": "b"}, "template": {"spec": pod("x")["spec"]}})
    page = await api.get("/api/v1/podtemplates?limit=1")
    assert _token(page)["start"] == f"/{page.json['items'][0]['metadata']['namespace']}/{page.names[0]}\u0000"


@conformance("KEP-365: all pages have one version, and show the state of the first")
async def test_pages_are_consistent(api: Api) -> None:
    await _three(api)
    first = await api.get(f"{api.config_maps}?limit=2")
    await api.config_map("c4")
    await api.delete(f"{api.config_maps}/c3")
    rest = await api.get(f"{api.config_maps}?limit=2&continue={first.json['metadata']['continue']}")
    assert (rest.names, rest.revision) == (["c3"], first.revision)
    assert "continue" not in rest.json["metadata"]
    assert "remainingItemCount" not in rest.json["metadata"]


@conformance("KEP-365: a page in the middle counts what remains after it")
async def test_a_page_in_the_middle(api: Api) -> None:
    await _three(api)
    first = await api.get(f"{api.config_maps}?limit=1")
    second = await api.get(f"{api.config_maps}?limit=1&continue={first.json['metadata']['continue']}")
    assert (second.names, second.json["metadata"]["remainingItemCount"]) == (["c2"], 1)


@conformance("KEP-365: a limit that nothing exceeds gives no token")
async def test_limit_above_number_of_objects(api: Api) -> None:
    await _three(api)
    page = await api.get(f"{api.config_maps}?limit=3")
    assert page.names == ["c1", "c2", "c3"]
    assert set(page.json["metadata"]) == {"resourceVersion"}


@conformance(
    "KEP-365: no count of what remains with a selector",
    ("labels", "labelSelector=on%3Dyes"),
    ("fields", "fieldSelector=metadata.name!%3Dc2"),
)
async def test_remaining_item_count_is_absent_with_selector(api: Api, selector: str) -> None:
    for name in ("c1", "c2", "c3", "c4"):
        await api.config_map(name, labels={"on": "yes"})
    page = await api.get(f"{api.config_maps}?limit=1&{selector}")
    assert page.names == ["c1"]
    assert "continue" in page.json["metadata"]
    assert "remainingItemCount" not in page.json["metadata"]


@conformance("KEP-365: pages with a selector give every match once")
async def test_pages_with_a_selector(api: Api) -> None:
    for number in range(8):
        await api.config_map(f"c{number}", labels={"even": str(number % 2 == 0).lower()})
    names: list[str] = []
    query = "limit=1"
    for _ in range(9):
        page = await api.get(f"{api.config_maps}?labelSelector=even%3Dtrue&{query}")
        names += page.names
        if "continue" not in page.json["metadata"]:
            break
        query = f"limit=1&continue={page.json['metadata']['continue']}"
    assert names == ["c0", "c2", "c4", "c6"]


@conformance("KEP-365: a token with another version is 400")
async def test_continue_with_a_version(api: Api) -> None:
    await _three(api)
    page = await api.get(f"{api.config_maps}?limit=1")
    answer = await api.get(f"{api.config_maps}?continue={page.json['metadata']['continue']}&resourceVersion=1")
    assert "specifying resource version is not allowed when using continue" in answer.refuses(400, "BadRequest")


@conformance("KEP-365: a token with version 0 goes on")
async def test_continue_with_version_0(api: Api) -> None:
    await _three(api)
    page = await api.get(f"{api.config_maps}?limit=1")
    answer = await api.get(f"{api.config_maps}?continue={page.json['metadata']['continue']}&resourceVersion=0")
    assert answer.names == ["c2", "c3"]


@conformance("KEP-365: a token that is none is 400", ("letters", "abc"), ("no JSON", "YWJj"), ("signs", "%25%25"))
async def test_a_bad_token(api: Api, token: str) -> None:
    answer = await api.get(f"{api.config_maps}?limit=1&continue={token}")
    assert "continue key is not valid" in answer.refuses(400, "BadRequest")


@conformance("KEP-365: a token of an unknown version is 400")
async def test_a_token_of_another_version(api: Api) -> None:
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v9","rv":1,"start":"a"}').rstrip(b"=").decode()
    answer = await api.get(f"{api.config_maps}?limit=1&continue={token}")
    assert "continue key is not valid" in answer.refuses(400, "BadRequest")


@conformance("KEP-365: a token may not lead out of what is listed")
async def test_continue_token_outside_of_collection(api: Api) -> None:
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}').rstrip(b"=").decode()
    answer = await api.get(f"{api.config_maps}?limit=1&continue={token}")
    assert "continue key is not valid" in answer.refuses(400, "BadRequest")


@conformance("KEP-365: a limit that is no number is 400")
async def test_non_numeric_limit(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}?limit=abc")
    assert 'strconv.ParseInt: parsing "abc": invalid syntax' in answer.refuses(400, "BadRequest")


@conformance("KEP-365: a negative limit is none")
async def test_a_negative_limit(api: Api) -> None:
    await _three(api)
    assert (await api.get(f"{api.config_maps}?limit=-1")).names == ["c1", "c2", "c3"]


@conformance("API concepts: unknown query parameters are ignored")
async def test_unknown_parameters(api: Api) -> None:
    assert (await api.get(f"{api.config_maps}?whatever=1")).status == 200


@conformance("API concepts: an empty list has empty items")
async def test_an_empty_list(api: Api) -> None:
    listed = await api.get(f"{api.core}/secrets")
    assert listed.json["items"] == []
    assert (listed.json["kind"], listed.json["apiVersion"]) == ("SecretList", "v1")


@conformance("API concepts: items of built-in kinds carry no kind and apiVersion")
async def test_items_of_built_in_kinds(api: Api) -> None:
    await api.config_map("a")
    item = (await api.get(api.config_maps)).json["items"][0]
    assert "kind" not in item
    assert "apiVersion" not in item


@conformance("API concepts: items of custom resources carry kind and apiVersion")
async def test_items_of_custom_resources(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    listed = (await api.get(path)).json
    assert (listed["kind"], listed["apiVersion"]) == ("WidgetList", f"{api.group()}/v1")
    assert listed["items"][0]["kind"] == "Widget"
    assert listed["metadata"]["continue"] == ""


@conformance("API concepts: lists are ordered by namespace and name")
async def test_the_order_of_a_list(api: Api) -> None:
    for name in ("b", "a.b", "a", "a-b", "c"):
        await api.config_map(name)
    assert (await api.get(api.config_maps)).names == ["a", "a-b", "a.b", "b", "c"]


@conformance("API concepts: a list over namespaces has all of them")
async def test_a_list_over_namespaces(api: Api) -> None:
    await api.config_map("here")
    listed = await api.get("/api/v1/configmaps?fieldSelector=metadata.name%3Dhere")
    assert api.namespace in [item["metadata"]["namespace"] for item in listed.json["items"]]


@conformance("API concepts: a list in a namespace that does not exist is empty")
async def test_a_list_in_no_namespace(api: Api) -> None:
    listed = await api.get("/api/v1/namespaces/there-is-none/configmaps")
    assert (listed.status, listed.json["items"]) == (200, [])


@conformance(
    "labels: a selector chooses",
    ("equality", "tier%3Dfront", ["a", "b"]),
    ("double equality", "tier%3D%3Dback", ["c"]),
    ("inequality has those without the label", "tier!%3Dfront", ["c", "d"]),
    ("in", "tier+in+(back,front)", ["a", "b", "c"]),
    ("notin has those without the label", "tier+notin+(front)", ["c", "d"]),
    ("exists", "stable", ["b"]),
    ("does not exist", "!stable", ["a", "c", "d"]),
    ("all requirements", "tier%3Dfront,stable", ["b"]),
    ("greater than", "weight>3", ["c"]),
    ("less than", "weight<5", ["a"]),
)
async def test_label_selectors(api: Api, selector: str, names: list[str]) -> None:
    await api.config_map("a", labels={"tier": "front", "weight": "3"})
    await api.config_map("b", labels={"tier": "front", "stable": ""})
    await api.config_map("c", labels={"tier": "back", "weight": "7"})
    await api.config_map("d")
    assert (await api.get(f"{api.config_maps}?labelSelector={selector}")).names == names


@conformance(
    "labels: a selector that cannot be read is 400",
    ("equality twice", "a%3D%3D%3Db", "found '=', expected: identifier"),
    ("an open list", "a+in+(b", "found '', expected: ',' or ')'"),
    ("a bad key", "-a", 'Invalid value: "-a"'),
)
async def test_bad_label_selectors(api: Api, selector: str, message: str) -> None:
    answer = await api.get(f"{api.config_maps}?labelSelector={selector}")
    assert message in answer.refuses(400, "BadRequest")


@conformance(
    "fields: a selector chooses",
    ("name", "metadata.name%3Da", ["a"]),
    ("not a name", "metadata.name!%3Da", ["b"]),
    ("no match", "metadata.name%3Dz", []),
    ("namespace that is another", "metadata.namespace%3Dother", []),
)
async def test_field_selectors(api: Api, selector: str, names: list[str]) -> None:
    await api.config_map("a")
    await api.config_map("b")
    assert (await api.get(f"{api.config_maps}?fieldSelector={selector}")).names == names


@conformance("fields: a field that is not known is 400, and names it")
async def test_an_unknown_field(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}?fieldSelector=foo%3Dbar")
    assert '"foo" is not a known field selector' in answer.refuses(400, "BadRequest")


@conformance("fields: a field that a custom resource does not have is 400")
async def test_an_unknown_field_of_a_custom_resource(api: Api) -> None:
    path = await api.widgets()
    answer = await api.get(f"{path}?fieldSelector=spec.size%3D1")
    assert "field label not supported: spec.size" in answer.refuses(400, "BadRequest")


@conformance("fields: pods are selected by what they run on and how far they are")
async def test_fields_of_pods(api: Api) -> None:
    await api.created(api.pods, pod("a", nodeName="n1"))
    await api.created(api.pods, pod("b"))
    assert (await api.get(f"{api.pods}?fieldSelector=spec.nodeName%3Dn1")).names == ["a"]
    assert (await api.get(f"{api.pods}?fieldSelector=spec.nodeName%3D")).names == ["b"]
    assert (await api.get(f"{api.pods}?fieldSelector=status.phase%3DPending")).names == ["a", "b"]


@conformance("fields: custom resources are selected by the fields that the CRD names", min_version="1.31")
async def test_selectable_fields(api: Api) -> None:
    path = await api.widgets(selectableFields=[{"jsonPath": ".spec.colour"}])
    await api.created(path, api.widget("a", {"colour": "red"}))
    await api.created(path, api.widget("b", {"colour": "green"}))
    assert (await api.get(f"{path}?fieldSelector=spec.colour%3Dred")).names == ["a"]


@conformance("resource versions: an exact list of a version that was compacted is 410 Expired")
async def test_an_exact_list_that_is_too_old(api: Api) -> None:
    await _three(api)
    await api.compact()
    answer = await api.get(f"{api.config_maps}?resourceVersion=1&resourceVersionMatch=Exact")
    assert answer.refuses(410, "Expired") == "The resourceVersion for the provided list is too old."


@conformance("KEP-365: an expired token is 410, and brings a token to go on with from what is there now")
async def test_an_expired_token(api: Api) -> None:
    await _three(api)
    await api.compact()
    old = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":1,"start":"c1\\u0000"}').rstrip(b"=").decode()
    answer = await api.get(f"{api.config_maps}?limit=1&continue={old}")
    assert answer.refuses(410, "Expired").startswith("The provided continue parameter is too old")
    assert _token(answer)["rv"] == -1
    rest = await api.get(f"{api.config_maps}?continue={answer.json['metadata']['continue']}")
    assert (rest.status, rest.names) == (200, ["c2", "c3"])


@conformance("API concepts: HEAD is a get without a body", ("an object", "/a"), ("a list", ""))
async def test_head(api: Api, name: str) -> None:
    await api.config_map("a")
    answer = await api.call("HEAD", f"{api.config_maps}{name}")
    assert (answer.status, answer.body) == (405, b"")
