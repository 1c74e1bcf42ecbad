"""What a declaration refuses, at the place where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from deltaloop.runtime import Context, InvalidControllerError, PathChanged, Request, controller


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("owns", "apps/v1/Deployment"),
        ("watches", "v1/Secret"),
        ("writes", "v1/ConfigMap"),
        ("predicates", PathChanged("spec.replicas")),
    ],
)
def test_one_thing_where_a_list_belongs_is_refused_at_once(name: str, given: Any) -> None:
    async def reconcile(request: Request, ctx: Context) -> None: ...

    with pytest.raises(InvalidControllerError, match=f"'configmap': {name} is one thing; it is a list: {name}="):
        controller("v1/ConfigMap", **{name: given})(reconcile)
    listed: dict[str, Any] = {name: [given]}
    assert controller("v1/ConfigMap", **listed)(reconcile).name == "configmap"
