"""Mistakes seeded into the code, each of which the tests of ``tests.webhooks.certificates.test_own`` must find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.webhooks.certificates.test_own import check_late_writes

from deltaloop.webhooks import WebhookTarget
from deltaloop.webhooks.certificates import own
from deltaloop.webhooks.certificates.own import AuthoritySecret
from deltaloop.webhooks.core.certificates.targets import bundle_patch
from lab.mutants.edited import edited


def untested(target: WebhookTarget, obj: Mapping[str, Any], certificates: Sequence[str]) -> list[dict[str, Any]]:
    """Return the patch of a ``caBundle`` without the test of the version that was read: a bug."""
    return bundle_patch(target, obj, certificates)[1:]


async def test_seeded_late_writes_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    edit = ('fields["data"] = data', 'fields["data"] = data; del fields["metadata"]["resourceVersion"]')
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await check_late_writes(edited("WritesWhateverIsThere", AuthoritySecret, edit))
    monkeypatch.setattr(own, "bundle_patch", untested)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await check_late_writes(AuthoritySecret)
