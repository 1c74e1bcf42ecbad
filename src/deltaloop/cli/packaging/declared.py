"""Program for ``deltaloop package``: its kinds, controllers, webhooks and settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from deltaloop.api.dns_names import label_problems
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import at, text
from deltaloop.api.kinds import BUILT_IN
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.load_controllers import load_declared, target_name
from deltaloop.cli.packaging.core import chart
from deltaloop.cli.packaging.core.chart_values import SCHEMA, VALUES, with_own_values
from deltaloop.cli.packaging.core.manifests import Manifest, PackagedProgram, manifests
from deltaloop.events import EventApi
from deltaloop.runtime import Controller
from deltaloop.runtime.core.access import Permission, roles
from deltaloop.runtime.program.access import Program, certificate_access, rules_of
from deltaloop.runtime.program.definitions import kind_reconciled, program_definitions
from deltaloop.runtime.program.object_names import check_name, check_namespace
from deltaloop.runtime.program.settings import Setting, declared_settings
from deltaloop.runtime.program.webhooks import default_service
from deltaloop.webhooks import WebhookAddress, WebhookSet, registrations
from deltaloop.webhooks.certificates.secret_form import empty_secret
from deltaloop.webhooks.certificates.targets import targets_in
from deltaloop.webhooks.declaring import Webhook

_DEFINITION: Final = "CustomResourceDefinition"
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackageCommand:
    """Options of ``deltaloop package``, which are its flags.

    Attributes:
        target: Module, with the name of an object in it if not all controllers are meant.
        name: Name of the program. Defaults to the name of the module.
        version: Version of the program, for example 1.2.3 or 1.2.3-rc.1.
        image: Container image, for example registry.example.com/greeter. Defaults to NAME. The tag
            defaults to VERSION.
        install_namespace: Namespace to install the program in. Defaults to NAME.
        namespace: Namespace that the program watches. Defaults to all namespaces.
        event_api: API for Events. ``events.k8s.io/v1`` combines repeated Events into a series.
        crd: File with CRDs of kinds that have no class in the module. Repeatable.
        shards: Whether the replicas share the objects, instead of one leader with standbys.
        service_monitor: Whether to create a ServiceMonitor for the Prometheus Operator.
    """

    target: str
    name: str = ""
    version: str = "0.1.0"
    image: str = ""
    install_namespace: str = ""
    namespace: str | None = None
    event_api: EventApi = EventApi.CORE_V1
    crd: tuple[Path, ...] = ()
    shards: bool = False
    service_monitor: bool = False

    def __post_init__(self) -> None:
        """Check the options before the program is loaded."""
        check_namespace("--namespace", self.namespace or "")
        check_namespace("--install-namespace", self.install_namespace)
        if not _VERSION.fullmatch(self.version) or len(self.version) > 63:
            raise InvalidArgumentError(f"must be like 1.2.3 or 1.2.3-rc.1, got {self.version!r}.", argument="--version")
        if set(self.image) & set(" \t\n\"'{}"):
            raise InvalidArgumentError(f"must be the name of an image, got {self.image!r}.", argument="--image")


@final
@dataclass(frozen=True, slots=True)
class DeclaredProgram:
    """Program to package, with notes for its author."""

    command: PackageCommand
    app: str
    definitions: tuple[Manifest, ...]
    controllers: tuple[Controller, ...]
    webhooks: tuple[Webhook, ...]
    settings: tuple[Setting, ...]
    notes: tuple[str, ...]

    def manifests(self) -> str:
        namespace = self.command.install_namespace or self.app
        return write_yaml(manifests(self._program(self.app, namespace)), indents_lists=True)

    def chart(self, there: Callable[[Iterable[str]], Mapping[str, str | None]] = lambda _: {}) -> dict[str, str]:
        """Return the texts of its Helm chart by path; ``there`` reads the existing files.

        Raises InvalidArgumentError for an image with a digest, or an invalid changed value.
        """
        if "@" in self.command.image:
            raise InvalidArgumentError(
                f"must not have a digest in a chart, got {self.command.image!r}.", argument="--image"
            )
        repository, tag = split_image(self.command.image or self.app)
        program = self._program(chart.NAME, chart.NAMESPACE)
        made = chart.chart(program, version=self.command.version, repository=repository, tag=tag)
        values = chart.values_of(program, repository=repository, tag=tag)
        return {**made, VALUES: with_own_values(there((VALUES, SCHEMA)), made, values)}

    def _program(self, name: str, namespace: str) -> PackagedProgram:
        command = self.command
        called = self.app  # the program's name, not the release's, because ``run`` gets it
        address = WebhookAddress(namespace=namespace, service=name)
        documents = registrations(WebhookSet(self.webhooks), address, name=called, own_namespace=namespace)
        secret, certificates = None, tuple[Permission, ...]()
        if self.webhooks:
            secret = empty_secret(default_service(called), namespace=namespace)
            targets = targets_in(documents)
            certificates = certificate_access(namespace=namespace, secret=default_service(called), targets=targets)
        around = Program(
            namespace=command.namespace or None,
            lease_namespace=namespace,
            shards=command.shards,
            event_api=command.event_api,
            certificates=certificates,
        )
        rules, _ = rules_of(self.controllers, program=around)
        repository, tag = split_image(command.image or self.app)
        arguments = [f"--namespace={command.namespace}"] if command.namespace else []
        arguments += [f"--event-api={command.event_api}"] if command.event_api is not EventApi.CORE_V1 else []
        arguments += [f"--webhook-name={called}"] if self.webhooks and called != target_name(command.target) else []
        return PackagedProgram(
            app=self.app,
            name=name,
            namespace=namespace,
            image=command.image if "@" in command.image else f"{repository}:{tag or command.version}",
            version=command.version.replace("+", "_"),
            definitions=tuple(_converted(each, documents) for each in self.definitions),
            roles=tuple(roles(rules, name=name)),
            arguments=tuple(arguments),
            shards=command.shards,
            service_monitor=command.service_monitor,
            webhooks=tuple(each for each in documents if each["kind"] != _DEFINITION),
            settings=self.settings,
            authority=secret,
        )


def declared_program(command: PackageCommand) -> DeclaredProgram:
    module, controllers, webhooks = load_declared(command.target)
    app = command.name or target_name(command.target)
    check_name("--name", app)
    if label_problems(app):
        raise InvalidArgumentError(
            f"must be a name for a Service: at most 63 letters, digits and inner '-', got {app!r}.", argument="--name"
        )
    made = program_definitions([module], controllers, webhooks)
    definitions = {text(at(each, "metadata", "name")): each for each in made}
    for file in command.crd:
        definitions |= {text(at(each, "metadata", "name")): each for each in _read(file)}
    _, guessed = rules_of(controllers, program=Program())
    notes = [f"the plural of {kind} is a guess. Declare a ResourceType to set it." for kind in guessed]
    for controller in controllers:
        kind = kind_reconciled(controller)
        if str(kind) not in map(str, BUILT_IN) and kind.group_resource not in definitions:
            notes.append(f"the module has no class for {kind}. Add --crd FILE if the program owns the CRD.")
    settings = tuple(declared_settings(module))
    notes += [
        f"set the variable {each.variable} in the Deployment: it has no default" for each in settings if each.required
    ]
    return DeclaredProgram(command, app, tuple(definitions.values()), controllers, webhooks, settings, tuple(notes))


def _converted(definition: Manifest, documents: Iterable[Manifest]) -> Manifest:
    """Return a CRD with the conversion from the webhooks, if any."""
    for document in documents:
        if document["kind"] == _DEFINITION and document["metadata"]["name"] == at(definition, "metadata", "name"):
            return {**definition, "spec": {**definition["spec"], **document["spec"]}}
    return definition


def split_image(image: str) -> tuple[str, str]:
    """Return an image's name and tag. The tag can be empty."""
    head, colon, tag = image.rpartition(":")
    return (head, tag) if colon and "/" not in tag else (image, "")


def _read(file: Path) -> list[Manifest]:
    try:
        found = [*read_yaml_documents(file.read_text(encoding="utf-8"), source=str(file))]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{file} cannot be read: {error}") from None
    definitions = [each for each in found if at(each, "kind") == _DEFINITION]
    if not definitions:
        raise InvalidArgumentError(f"must be a file with CustomResourceDefinitions, got {file}.", argument="--crd")
    return definitions
