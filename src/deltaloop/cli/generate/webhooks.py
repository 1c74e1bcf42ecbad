"""``deltaloop generate webhooks``: webhook configurations of a module."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import CUSTOM_RESOURCE_DEFINITION
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.load_controllers import LoadError, TargetArgument, load_declared, target_name
from deltaloop.runtime.core.access import Permission
from deltaloop.runtime.program.access import certificate_access
from deltaloop.runtime.program.definitions import program_definitions
from deltaloop.runtime.program.object_names import WEBHOOK_URL_RULE, check_name, check_namespace, is_webhook_url
from deltaloop.runtime.program.webhooks import default_service
from deltaloop.webhooks import WebhookAddress, WebhookSet, registrations
from deltaloop.webhooks.certificates.secret_form import empty_secret
from deltaloop.webhooks.certificates.targets import targets_in

_PART: Final = """\
# Only the conversion settings of the definition, because the module lacks classes for some versions. Copy them into the
# definition, or merge them with `kubectl apply --server-side --field-manager webhooks`. A plain apply would remove the
# other fields.
"""


def webhooks(
    target: TargetArgument,
    *,
    name: Annotated[
        str, typer.Option(help="Name of the webhook configurations. Defaults to the name of the module.")
    ] = "",
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace",
            "-n",
            help="Namespace of the program and its Service. Objects in this namespace are exempt from the webhooks.",
        ),
    ] = "",
    service: Annotated[str, typer.Option(help="Name of the Service. Defaults to NAME-webhooks.")] = "",
    port: Annotated[int, typer.Option(help="Port of the Service.", min=1, max=65535)] = 443,
    url: Annotated[
        str,
        typer.Option(help="URL at which the cluster reaches the webhooks, instead of a Service: https://HOST:PORT."),
    ] = "",
    ca_bundle: Annotated[
        Path | None,
        typer.Option(help="CA certificates in PEM format. The program manages its own certificates by default."),
    ] = None,
) -> None:
    """Print the webhook configurations of a module, and the conversion settings of its CRDs."""
    address = address_of(target, name=name, namespace=namespace, service=service, port=port, url=url, ca=ca_bundle)
    typer.echo(print_registrations(target, address, name=name, own_namespace=namespace), nl=False)


def address_of(
    target: str, *, name: str, namespace: str, service: str, port: int, url: str, ca: Path | None
) -> WebhookAddress:
    """Return the address of the webhooks from the flags; an empty name or service means the default."""
    bundle = ""
    if ca is not None:
        try:
            pem = ca.read_bytes()
        except OSError as error:
            raise InvalidArgumentError(f"--ca-bundle {ca} cannot be read: {error.strerror}") from None
        if b"-----BEGIN CERTIFICATE-----" not in pem or b"PRIVATE KEY" in pem:
            raise InvalidArgumentError(f"--ca-bundle must be a file of certificates in PEM without a key, got {ca}.")
        bundle = base64.b64encode(pem).decode()
    if url:
        if not is_webhook_url(url):
            raise InvalidArgumentError(f"--url must be {WEBHOOK_URL_RULE}, got {url!r}.")
        return WebhookAddress(url=url.rstrip("/"), ca_bundle=bundle)
    if not namespace:
        raise InvalidArgumentError("--namespace or --url is required. Add the namespace of the program, or its URL.")
    found = service or default_service(name or target_name(target))
    check_name("--service", found)
    check_namespace("--namespace", namespace)
    return WebhookAddress(namespace=namespace, service=found, port=port, ca_bundle=bundle)


def print_registrations(target: str, address: WebhookAddress, *, name: str, own_namespace: str) -> str:
    """Return the manifests as YAML.

    If the module has classes for all versions of a converted kind, the whole CRD is printed, because applying a part
    with the same field manager would remove the rest. A Secret for managed certificates comes first.
    """
    found, documents = _registered(target, address, name=name, own_namespace=own_namespace)
    if address.service and not address.ca_bundle:
        documents.insert(0, empty_secret(default_service(found), namespace=address.namespace))
    parts = [each for each in documents if each["kind"] == CUSTOM_RESOURCE_DEFINITION.kind]
    wholes = _whole_definitions(target, parts)
    printed: list[str] = [write_yaml([wholes.get(_name(each), each)]) for each in documents]
    alone = [each in parts and _name(each) not in wholes for each in documents]
    return "---\n".join(_PART * is_part + text for is_part, text in zip(alone, printed, strict=True))


def _name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def _whole_definitions(target: str, parts: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the whole CRDs by name if the module has classes for all converted versions."""
    declared = load_declared(target)
    conversions = {each.type.group_resource: each for each in WebhookSet(declared.webhooks).conversions}
    said = {_name(part): part["spec"] for part in parts}
    found: dict[str, dict[str, Any]] = {}
    for whole in program_definitions([declared.module], declared.controllers, declared.webhooks):
        conversion = conversions.get(_name(whole))
        versions = {each["name"] for each in whole["spec"]["versions"]}
        if conversion is not None and {conversion.hub, *conversion.spokes} <= versions:
            found[_name(whole)] = {**whole, "spec": {**whole["spec"], **said[_name(whole)]}}
    return found


def certificate_rights(target: str, *, name: str, namespace: str) -> tuple[Permission, ...]:
    """Return the permissions that a program needs to manage the certificates of its webhooks."""
    check_namespace("--webhooks-namespace", namespace)
    address = WebhookAddress(namespace=namespace, service="any")  # only the names are used
    found, documents = _registered(target, address, name=name, own_namespace=namespace)
    return certificate_access(namespace=namespace, secret=default_service(found), targets=targets_in(documents))


def _registered(
    target: str, address: WebhookAddress, *, name: str, own_namespace: str
) -> tuple[str, list[dict[str, Any]]]:
    webhooks = WebhookSet(load_declared(target).webhooks)
    if not webhooks:
        raise LoadError(
            target, "the module contains no webhooks. Decorate a function with @dl.validate, @dl.mutate or @dl.convert."
        )
    found = name or target_name(target)
    check_name("--name", found)
    return found, registrations(webhooks, address, name=found, own_namespace=own_namespace)
