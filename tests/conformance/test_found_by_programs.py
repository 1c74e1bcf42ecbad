"""What a controller manager, a scheduler, KWOK and Helm were first to find: small cases of what ``make -C lab world``
showed.

Source: what a real kube-apiserver answers.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, conformance

COUNT = "deprecated.daemonset.template.generation"


@conformance(
    "delete: a namespace has no grace period",
    ("none is asked for", None),
    ("one is asked for", {"gracePeriodSeconds": 5}),
    ("zero is asked for", {"gracePeriodSeconds": 0}),
    ("its objects go first", {"propagationPolicy": "Foreground"}),
)
async def test_namespace_termination(api: Api, options: dict[str, Any] | None) -> None:
    name = f"{api.namespace}-more"
    await api.created("/api/v1/namespaces", {"metadata": {"name": name}})
    for _ in range(2):
        metadata = (await api.delete(f"/api/v1/namespaces/{name}", options)).json["metadata"]
        assert "deletionTimestamp" in metadata
        assert "deletionGracePeriodSeconds" not in metadata


def daemon_sets(api: Api) -> str:
    return f"/apis/apps/v1/namespaces/{api.namespace}/daemonsets"


def daemon_set(image: str = "i:1") -> dict[str, Any]:
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def counted(found: dict[str, Any]) -> tuple[str, list[str]]:
    """Return a DaemonSet's count of templates, and who owns it."""
    owners = [
        entry["manager"]
        for entry in found["metadata"]["managedFields"]
        if f"f:{COUNT}" in entry["fieldsV1"].get("f:metadata", {}).get("f:annotations", {})
    ]
    return found["metadata"]["annotations"][COUNT], owners


@conformance(
    "DaemonSets: the count of templates is its author's; an update that says another one owns it, and counts no more",
    ("a new template", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}, "2", "one"),
    ("another annotation", {"metadata": {"annotations": {"q": "r"}}}, "1", "one"),
    ("another count", {"metadata": {"annotations": {COUNT: "7"}}}, "1", "two"),
    ("no count", {"metadata": {"annotations": {COUNT: None}}}, "1", "two"),
    ("no annotations", {"metadata": {"annotations": None}}, "1", "two"),
    (
        "another count and template",
        {"metadata": {"annotations": {COUNT: "7"}}, "spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}},
        "2",
        "two",
    ),
)
async def test_daemon_set_template_generation(api: Api, change: dict[str, Any], count: str, owner: str) -> None:
    made = await api.created(f"{daemon_sets(api)}?fieldManager=one", daemon_set())
    assert counted(made.json) == ("1", ["one"])
    changed = await api.patch(f"{daemon_sets(api)}/d?fieldManager=two", change)
    assert changed.status == 200, changed.text
    assert counted(changed.json) == (count, [owner])
    assert counted((await api.get(f"{daemon_sets(api)}/d")).json) == (count, [owner])


@conformance("DaemonSets: nobody owns the count of templates of one that is applied")
async def test_template_generation_of_applied_daemon_set(api: Api) -> None:
    for manager, image, count in (("one", "i:1", "1"), ("one", "i:2", "2"), ("two", "i:3", "3")):
        applied = await api.patch(
            f"{daemon_sets(api)}/d?fieldManager={manager}&force=true",
            daemon_set(image),
            "apply-patch+yaml",
        )
        assert applied.status in (200, 201), applied.text
        assert counted(applied.json) == (count, [])
