"""Common parts of the workload kinds: selector, pod template, update strategies and warnings.

Source: Kubernetes pkg/apis/apps/validation; pkg/registry/apps (``WarningsOnCreate``, ``WarningsOnUpdate``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from deltaloop.api.json_values import at, integer, mapping, string_map, text
from deltaloop.apiserver.core.kinds.field_checks import immutable, selector_errors, shown_selector
from deltaloop.apiserver.core.kinds.pod_warnings import pod_warnings
from deltaloop.apiserver.core.metadata.rules import selects
from deltaloop.schemas.checking import Check, Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required, shown


def selector_check(kind: str, words: str = "") -> Check:
    """Return a check that compares a spec's selector with the labels of its pod template."""

    def check(place: Place) -> Iterator[SchemaError]:
        selector, path = place.fields.get("selector"), place.below("selector")
        wrong = any(selector_errors(selector, path))
        if selector == {}:
            yield invalid_value(path, {}, f"empty selector is invalid for {kind}")
        elif selector is None and kind != "daemonset":
            yield required(path)
        elif wrong and kind != "daemonset":
            yield SchemaError(path, "FieldValueInvalid", f"Invalid value: {shown_selector(selector)}{words}")
        if selector != {} and not wrong:
            yield from selected_errors(place, selector)

    return check


def selected_errors(place: Place, selector: object) -> Iterator[SchemaError]:
    labels = at(place.fields, "template", "metadata", "labels")
    if selector is None or not selects(mapping(selector), string_map(labels)):
        text_ = "`selector` does not match template `labels`"
        yield invalid_value(place.below("template.metadata.labels"), labels, text_)


def template_check(owner: str) -> Check:
    return lambda place: ending_errors(place, owner)


def ending_errors(place: Place, owner: str) -> Iterator[SchemaError]:
    """Yield errors unless the pods of the template restart forever."""
    pod_spec, path = mapping(at(place.fields, "template", "spec")), place.below("template.spec")
    if pod_spec.get("restartPolicy") in ("OnFailure", "Never"):
        yield not_supported(f"{path}.restartPolicy", text(pod_spec["restartPolicy"]), ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        yield forbidden_field(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {owner} is not Supported")


def selector_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    return immutable(at(before, "spec"), at(after, "spec"), "selector", path="spec")


def no_strategy(place: Place, known: tuple[str, ...]) -> SchemaError:
    """Return the error for an unknown type of update strategy."""
    listed = ", ".join(f'"{name}"' for name in known)
    text_ = f"Unsupported value: {shown_strategy(place.fields)}: supported values: {listed}"
    return SchemaError(place.path, "FieldValueNotSupported", text_)


def shown_strategy(strategy: Mapping[str, object]) -> str:
    return f'{{"Type":{shown(strategy.get("type"))},"RollingUpdate":{shown(strategy.get("rollingUpdate"))}}}'


def rolling_update(**defaults: object) -> Callable[[dict[str, object]], None]:
    def fill(strategy: dict[str, object]) -> None:
        if strategy["type"] == "RollingUpdate":
            rolling = mapping(strategy.setdefault("rollingUpdate", {}))
            for name, value in defaults.items():
                rolling.setdefault(name, value)

    return fill


def labels_of_template(owner: dict[str, object]) -> dict[str, object]:
    """Copy the template's labels to an object without labels, and return them."""
    labels = mapping(at(owner, "spec", "template", "metadata", "labels"))
    metadata = mapping(owner.get("metadata"))
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    return labels


def template_warnings(owner: Mapping[str, object]) -> Iterator[str]:
    return pod_warnings(at(owner, "spec", "template"), "spec.template.")


def replicas(owner: Mapping[str, object]) -> int:
    asked = at(owner, "spec", "replicas")
    return 1 if asked is None else integer(asked)


def ready_of_replicas(owner: Mapping[str, object]) -> str:
    return f"{integer(at(owner, 'status', 'readyReplicas'))}/{replicas(owner)}"
