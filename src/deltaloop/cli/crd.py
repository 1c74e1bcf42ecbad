"""``deltaloop crd``: definitions of a module's classes, and whether a file has them. Core: ``crds/differences.py``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError, UnknownResourceError
from deltaloop.api.json_values import at, text
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.yaml_reader import read_yaml_documents
from deltaloop.api.yaml_writer import write_yaml
from deltaloop.cli.load_controllers import LoadError, import_module, named_object
from deltaloop.crds import breaking_changes, crd_of
from deltaloop.crds.declaring import by_kind, declared_kind, is_kind
from deltaloop.crds.differences import differences
from deltaloop.runtime import Controller
from deltaloop.runtime.program.access import guess
from deltaloop.webhooks import AdmissionWebhook
from deltaloop.webhooks.declaring import Webhook

_DEFINITION: Final = "CustomResourceDefinition"
_VERSIONS: Final = ("spec", "versions")


def load_definitions(target: str) -> list[dict[str, Any]]:
    """Import a module and return the definitions of the kinds in it, in their order.

    Args:
        target: ``package.module`` or ``path/to/file.py``, which mean all kinds in it; ``module:name`` means the kind of
            one class, in all versions that are there.

    Raises:
        LoadError: If the module or the class is missing, or there is none.
        InvalidKindError: If the classes of a kind do not fit together.
    """
    name, _, attribute = target.partition(":")
    module = import_module(target, name)
    kinds = kinds_in(module)
    if attribute:
        wanted = named_object(target, module, attribute)
        if not is_kind(wanted):
            raise LoadError(target, f"{attribute} is no class that @dl.custom_resource decorates")
        kinds = [classes for classes in kinds if wanted in classes]
    if not kinds:
        problem = (
            f"module {module.__name__} has no kind; decorate a class with @dl.custom_resource(group=..., version=...)"
        )
        raise LoadError(target, problem)
    return [crd_of(*classes) for classes in kinds]


def kinds_in(module: ModuleType) -> list[list[type]]:
    """Return the classes of a module that are kinds: the versions of a kind together, in their order."""
    return by_kind(value for value in vars(module).values() if is_kind(value))


def program_definitions(
    module: ModuleType, controllers: Sequence[Controller], webhooks: Sequence[Webhook] = ()
) -> list[dict[str, Any]]:
    """Return the definitions of the kinds that are the program's own: of the groups whose kinds it reconciles.

    Classes of other groups stand for what others define.

    Args:
        module: Where kinds are looked for, too.
        controllers: What is reconciled.
        webhooks: What is served: the classes of kinds that are judged, completed or converted are its own, too.
    """
    reconciled = [*map(kind_reconciled, controllers)]
    sides = [each for hook in webhooks for each in kinds_of(hook) if is_kind(each.model)]
    groups = {kind.group for kind in (*reconciled, *sides)}
    models = [kind.model for kind in (*reconciled, *sides) if kind.model is not None]
    modules = [module, *(sys.modules[model.__module__] for model in models if model.__module__ in sys.modules)]
    found: dict[str, list[type]] = {}
    for classes in (classes for each in dict.fromkeys(modules) for classes in kinds_in(each)):
        kind = declared_kind(classes[0]).type
        if kind.group in groups:
            found.setdefault(kind.group_resource, []).extend(classes)
    for model in filter(is_kind, models):  # one that no module has by a name
        found.setdefault(declared_kind(model).type.group_resource, []).append(model)
    return [crd_of(*dict.fromkeys(classes)) for classes in found.values()]


def kinds_of(webhook: Webhook) -> tuple[ResourceType[Any], ...]:
    """Return the kinds that a webhook is about: a conversion has two, and may name a class of the kind besides."""
    if isinstance(webhook, AdmissionWebhook):
        return (webhook.type,)
    named = () if webhook.kind is None else (webhook.kind,)
    return (webhook.source, webhook.target, *named)


def kind_reconciled(controller: Controller) -> ResourceType[Any]:
    """Return the kind that a controller reconciles; of a name that is not built in, what is probably meant."""
    try:
        return parse_resource_type(controller.resource)
    except UnknownResourceError:
        return guess(str(controller.resource))


def print_definitions(definitions: Sequence[dict[str, Any]]) -> str:
    """Return definitions as YAML."""
    return write_yaml(definitions)


def check_definitions(definitions: Sequence[dict[str, Any]], file: Path, target: str) -> list[str]:
    """Return what keeps a file from having the definitions that classes make, in lines; empty if nothing does.

    Args:
        definitions: What classes make.
        file: Where they should be; other objects in it do not matter.
        target: What the classes come from, for what to do.

    Raises:
        InvalidArgumentError: If the file cannot be read.
    """
    there_is = _read(file)
    written = {text(at(each, "metadata", "name")): each for each in there_is if at(each, "kind") == _DEFINITION}
    lines: list[str] = []
    renamed = _renamed(written, definitions)
    for made in definitions:
        name = text(at(made, "metadata", "name"))
        there = written.pop(renamed.get(name, name), None)
        if there is None:
            lines.append(f"{file} has no definition {name}")
            continue
        if not (wrong := differences(there, made)):
            continue
        lines.append(f"{file}: {renamed.get(name, name)} is not what the class says")
        lines += [f"  {line}" for line in wrong]
        if broken := breaking_changes(there, made):
            lines.append("  The change breaks stored objects:")
            lines += [f"    {change}" for change in broken]
    lines += [f"{file} has a definition {name}, of which there is no class" for name in written]
    if lines and all(at(each, "kind") == _DEFINITION for each in there_is):
        lines.append(f"deltaloop crd {target} > {file} writes it anew")
    elif lines:
        lines.append(f"deltaloop crd {target} prints what belongs there; the other objects of {file} stay")
    return lines


def _renamed(written: Mapping[str, Any], definitions: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return how a definition was called before its class had another name, plural or group, as far as that is clear.

    It is if one that is gone and one that is new have the same kind, or the same versions with the same fields.
    """
    made = {text(at(each, "metadata", "name")): each for each in definitions}
    alike = [
        (new, gone)
        for new in made.keys() - written.keys()
        for gone in written.keys() - made.keys()
        if any(at(made[new], *path) == at(written[gone], *path) for path in (("spec", "names", "kind"), _VERSIONS))
    ]
    news, gones = [new for new, _ in alike], [gone for _, gone in alike]
    return {new: gone for new, gone in alike if news.count(new) == gones.count(gone) == 1}


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        return [*read_yaml_documents(file.read_text(encoding="utf-8"))]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{file} cannot be read: {error}") from None
