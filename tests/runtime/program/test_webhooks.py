"""``dl.run`` serves webhooks: on the embedded server at once, in a cluster by a certificate of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.errors import RunOptionError
from deltaloop.runtime.program.webhooks import ProgramWebhooks
from deltaloop.webhooks import (
    ManagedCertificates,
    MountedCertificates,
    TargetKind,
    WebhookAddress,
    WebhookSet,
    WebhookTarget,
    registrations,
)
from deltaloop.webhooks.declaring import Webhook
from tests.webhooks.kinds import ALL


def webhooks(declared: Sequence[Webhook] = ALL, **options: Any) -> ProgramWebhooks:
    return ProgramWebhooks.of(declared, dl.RunOptions(**options), name="mine")


def client() -> dl.Client:
    return dl.Client(dl.ClientConfig(server="http://127.0.0.1:1", namespace="shop"))


def test_certificate_targets_equal_registrations() -> None:
    found = webhooks().targets()
    documents = registrations(WebhookSet(ALL), WebhookAddress(namespace="shop", service="mine-webhooks"), name="mine")
    registered = [
        WebhookTarget(
            TargetKind(each["kind"]), each["metadata"]["name"], tuple(hook["name"] for hook in each.get("webhooks", ()))
        )
        for each in documents
    ]
    assert list(found) == registered


async def test_source_of_certificate_follows_options(tmp_path: Path) -> None:
    async with client() as connected:
        own = webhooks().certificates(connected)
        assert isinstance(own, ManagedCertificates)
        assert repr(own) == "<ManagedCertificates in Secret shop/mine-webhooks>"
        assert isinstance(webhooks(webhook_cert_dir=tmp_path).certificates(connected), MountedCertificates)
        assert isinstance(webhooks(webhook_url="https://192.0.2.7:9443").certificates(connected), ManagedCertificates)
        assert webhooks(webhook_bind_address="0").certificates(connected) is None
        assert webhooks(()).certificates(connected) is None


def test_webhooks_are_registered_by_url_on_embedded_server(tmp_path: Path) -> None:
    local = webhooks(embedded=True)
    assert local.listen is not None
    assert (local.listen.host, local.listen.grace) == ("127.0.0.1", 0.0)
    assert local.certificate is not None
    assert local.address is not None
    assert local.address.url == "https://127.0.0.1:9443"
    none = webhooks((), embedded=True)
    assert (none.certificate, none.address) == (None, None)
    with pytest.raises(RunOptionError) as no_port:
        webhooks(embedded=True, webhook_bind_address=":0")
    assert no_port.value.options == ("webhook_bind_address", "embedded")
    with pytest.raises(RunOptionError) as with_ca:
        webhooks(embedded=True, webhook_client_ca=tmp_path / "ca.pem")
    assert with_ca.value.options == ("webhook_client_ca", "embedded")
