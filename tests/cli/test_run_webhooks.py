"""``deltaloop run`` serves webhooks: on the embedded server at once, in a cluster by a certificate of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import deltaloop as dl
from deltaloop.cli.run_flags import RunFlags
from deltaloop.cli.run_webhooks import RunWebhooks
from deltaloop.errors import InvalidArgumentError
from deltaloop.webhooks import (
    MountedCertificates,
    OwnCertificates,
    TargetKind,
    WebhookAddress,
    WebhookServerOptions,
    WebhookSet,
    WebhookTarget,
    registrations,
)
from tests.webhooks.kinds import ALL

LISTEN = WebhookServerOptions()
RUN = RunWebhooks(name="mine", webhooks=ALL, listen=LISTEN)
MODULE = """
import deltaloop as dl

@dl.validate("apps/v1/Deployment")
def check(deployment): ...
"""


def client() -> dl.Client:
    return dl.Client(dl.ClientConfig(server="http://127.0.0.1:1", namespace="shop"))


def test_certificates_are_for_what_is_registered() -> None:
    found = RUN.targets()
    documents = registrations(WebhookSet(ALL), WebhookAddress(namespace="shop", service="mine-webhooks"), name="mine")
    registered = [
        WebhookTarget(
            TargetKind(each["kind"]), each["metadata"]["name"], tuple(hook["name"] for hook in each.get("webhooks", ()))
        )
        for each in documents
    ]
    assert list(found) == registered


async def test_where_a_certificate_is_from(tmp_path: Path) -> None:
    async with client() as connected:
        own = RUN.certificates(connected)
        assert isinstance(own, OwnCertificates)
        assert repr(own) == "<OwnCertificates in Secret shop/mine-webhooks>"
        assert isinstance(replace(RUN, folder=tmp_path).certificates(connected), MountedCertificates)
        assert isinstance(replace(RUN, url="https://192.0.2.7:9443").certificates(connected), OwnCertificates)
        assert replace(RUN, listen=None).certificates(connected) is None
        assert RunWebhooks(listen=LISTEN).certificates(connected) is None


def test_on_the_embedded_server_it_is_registered_by_url() -> None:
    local, certificate, address = RUN.on_embedded_server()
    assert local.listen is not None
    assert local.listen.host == "127.0.0.1"
    assert certificate is not None
    assert address is not None
    assert address.url == "https://127.0.0.1:9443"
    assert RunWebhooks(listen=LISTEN).on_embedded_server()[1:] == (None, None)
    with pytest.raises(InvalidArgumentError, match="needs a port"):
        replace(RUN, listen=WebhookServerOptions(port=0)).on_embedded_server()


def test_flags_say_where_and_how(tmp_path: Path) -> None:
    file = tmp_path / "flags_of_webhooks.py"
    file.write_text(MODULE)
    command = RunFlags(target=str(file), webhook_bind_address="127.0.0.1:8443", webhook_service="svc").command()
    assert command.controllers == ()
    found = command.webhooks
    assert (found.name, found.service, found.listen) == (
        "flags-of-webhooks",
        "svc",
        WebhookServerOptions(host="127.0.0.1", port=8443),
    )
    assert RunFlags(target=str(file), webhook_bind_address="0").command().webhooks.listen is None
    for wrong in ({"webhook_url": "http://192.0.2.7"}, {"webhook_service": "No"}, {"webhook_name": "No"}):
        with pytest.raises(InvalidArgumentError):
            RunFlags(target=str(file), **wrong).command()  # type: ignore[arg-type]
