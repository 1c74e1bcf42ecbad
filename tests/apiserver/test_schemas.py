from __future__ import annotations

from typing import Any

from tests.apiserver.serving import CRDS, WIDGETS, serving, widget, widget_crd


def crd(**properties: Any) -> dict[str, Any]:
    result = widget_crd()
    spec = {"type": "object", "required": ["size"], "properties": properties}
    for version in result["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        del version["subresources"]
    return result


SIZE = {"type": "integer", "maximum": 10}
COLOR = {"type": "string", "default": "red"}


async def test_objects_are_pruned_defaulted_and_validated() -> None:
    async with serving() as on:
        await on.call.created(CRDS, crd(size=SIZE, color=COLOR))
        sent = widget("a", 3)
        sent["spec"]["bogus"] = 1
        answer = await on.call.created(WIDGETS, sent)
        assert answer.json["spec"] == {"size": 3, "color": "red"}
        assert answer.headers["Warning"] == '299 - "unknown field \\"spec.bogus\\""'
        text = "spec.size: Invalid value: 30: spec.size in body should be less than or equal to 10"
        refused = await on.call.post(WIDGETS, widget("b", 30))
        assert refused.refuses(422, "Invalid") == f'Widget.example.com "b" is invalid: {text}'
        patched = await on.call.patch(f"{WIDGETS}/a", {"spec": {"size": 30}})
        assert patched.refuses(422, "Invalid") == f'Widget.example.com "a" is invalid: {text}'


async def test_strict_validation_rejects_and_ignore_gives_no_warning() -> None:
    async with serving() as on:
        await on.call.created(CRDS, crd(size=SIZE))
        sent = widget("a")
        sent["spec"]["bogus"] = 1
        message = (await on.call.post(f"{WIDGETS}?fieldValidation=Strict", sent)).refuses(400, "BadRequest")
        assert message == (
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus"'
        )
        answer = await on.call.created(f"{WIDGETS}?fieldValidation=Ignore", sent)
        assert "Warning" not in answer.headers
        message = (await on.call.patch(f"{WIDGETS}/a?fieldValidation=Strict", {"spec": {"bogus": 1}})).refuses(
            422, "Invalid"
        )
        assert message.endswith('strict decoding error: unknown field "spec.bogus"')
        await on.call.post(f"{WIDGETS}?fieldValidation=Loud", sent)
        (await on.call.post(f"{WIDGETS}?fieldValidation=Loud", sent)).refuses(422, "Invalid")


async def test_new_default_applies_to_stored_objects() -> None:
    async with serving() as on:
        created = await on.call.created(CRDS, crd(size=SIZE))
        await on.call.created(WIDGETS, widget("a"))
        changed = crd(size=SIZE, color=COLOR)
        changed["metadata"] = created.json["metadata"]
        assert (await on.call.put(f"{CRDS}/widgets.example.com", changed)).status == 200
        assert (await on.call.get(f"{WIDGETS}/a")).json["spec"] == {"size": 1, "color": "red"}
        assert (await on.call.get(WIDGETS)).json["items"][0]["spec"]["color"] == "red"


async def test_non_structural_schema_is_rejected_and_rules_are_evaluated() -> None:
    async with serving() as on:
        refused = await on.call.post(CRDS, crd(size={}))
        assert "must not be empty for specified object fields" in refused.refuses(422, "Invalid")
        rules = [{"rule": "self > 0"}]
        answer = await on.call.created(CRDS, crd(size={**SIZE, "x-kubernetes-validations": rules}))
        assert "Warning" not in answer.headers
        message = (await on.call.post(WIDGETS, widget("a", size=0))).refuses(422, "Invalid")
        assert message.endswith("spec.size: Invalid value: 0: failed rule: self > 0")
