"""What the kinds that make pods have in common: a selector, a pod template, strategies, and warnings about it.

Source: Kubernetes pkg/apis/apps/validation; pkg/registry/apps (``WarningsOnCreate``, ``WarningsOnUpdate``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from deltaloop.apiserver.core.kinds.cells import number_at, template_cells
from deltaloop.apiserver.core.kinds.field_checks import immutable, selector_errors, shown, shown_selector
from deltaloop.apiserver.core.kinds.pod_spec import pod_template_errors
from deltaloop.apiserver.core.kinds.pod_warnings import pod_warnings
from deltaloop.apiserver.core.metadata.label_match import selects
from deltaloop.apiserver.core.strategy import Cell
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.json_values import at, integer, mapping, string_map, text


def selector_and_template_errors(spec: Mapping[str, object], kind: str, owner: str) -> Iterator[FieldError]:
    """Yield what is wrong with the selector and the template of an owner, which is called so and so in messages."""
    selector = spec.get("selector")
    wrong = [*selector_errors(selector, "spec.selector")]
    yield from wrong
    if selector == {}:
        yield invalid_value("spec.selector", "{}", f"empty selector is invalid for {kind}")
    elif selector is None and owner != "DaemonSet":
        yield required("spec.selector")
    elif wrong and owner != "DaemonSet":
        text_ = "" if owner == "StatefulSet" else ": invalid label selector"
        yield FieldError("spec.selector", "FieldValueInvalid", f"Invalid value: {shown_selector(selector)}{text_}")
    if selector != {} and not wrong:
        yield from selected_errors(spec, selector)
    yield from template_errors(spec, owner)


def selected_errors(spec: Mapping[str, object], selector: object) -> Iterator[FieldError]:
    """Yield an error unless the labels of a pod template are what its owner selects."""
    labels = at(spec, "template", "metadata", "labels")
    if selector is None or not selects(mapping(selector), string_map(labels)):
        text_ = "`selector` does not match template `labels`"
        yield invalid_value("spec.template.metadata.labels", shown(labels), text_)


def template_errors(spec: Mapping[str, object], owner: str) -> Iterator[FieldError]:
    """Yield what is wrong with pods that are always started again."""
    pod_spec = mapping(at(spec, "template", "spec"))
    yield from pod_template_errors(spec.get("template"), "spec.template")
    if pod_spec.get("restartPolicy") in ("OnFailure", "Never"):
        yield not_supported("spec.template.spec.restartPolicy", text(pod_spec["restartPolicy"]), ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        text_ = f"activeDeadlineSeconds in {owner} is not Supported"
        yield forbidden_field("spec.template.spec.activeDeadlineSeconds", text_)


def selector_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield an error if an update changes the selector of an object that must keep it."""
    return immutable(at(before, "spec"), at(after, "spec"), "selector", path="spec")


def no_strategy(field: str, strategy: Mapping[str, object], known: tuple[str, ...]) -> FieldError:
    """Say that a strategy of updates is of none of the types that are known."""
    listed = ", ".join(f'"{name}"' for name in known)
    text_ = f"Unsupported value: {shown_strategy(strategy)}: supported values: {listed}"
    return FieldError(field, "FieldValueNotSupported", text_)


def shown_strategy(strategy: Mapping[str, object]) -> str:
    """Write a strategy of updates as messages have it."""
    return f'{{"Type":{shown(strategy.get("type"))},"RollingUpdate":{shown(strategy.get("rollingUpdate"))}}}'


def rolling_update(**defaults: object) -> Callable[[dict[str, object]], None]:
    """Return what fills in a strategy of updates that is a rolling one."""

    def fill(strategy: dict[str, object]) -> None:
        if strategy["type"] == "RollingUpdate":
            rolling = mapping(strategy.setdefault("rollingUpdate", {}))
            for name, value in defaults.items():
                rolling.setdefault(name, value)

    return fill


def labels_of_template(owner: dict[str, object]) -> dict[str, object]:
    """Give an object without labels those of its template, and return these."""
    labels = mapping(at(owner, "spec", "template", "metadata", "labels"))
    metadata = mapping(owner.get("metadata"))
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    return labels


def template_warnings(owner: Mapping[str, object]) -> Iterator[str]:
    """Yield what there is to warn about in a pod template."""
    return pod_warnings(at(owner, "spec", "template"), "spec.template.")


def replicas(owner: Mapping[str, object]) -> int:
    """Return how many replicas an object asks for; one, the default of the API, where it does not say."""
    asked = at(owner, "spec", "replicas")
    return 1 if asked is None else integer(asked)


def ready_of_replicas(owner: Mapping[str, object]) -> str:
    """A cell: how many replicas are ready, of those that are asked for."""
    return f"{integer(at(owner, 'status', 'readyReplicas'))}/{replicas(owner)}"


def replica_cells() -> dict[str, Cell]:
    """The cells of what keeps a number of pods."""
    return {
        "Desired": replicas,
        "Current": number_at("status.replicas"),
        "Ready": number_at("status.readyReplicas"),
        **template_cells(),
    }
