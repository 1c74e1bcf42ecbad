"""Metrics page with deltaloop's metrics and those that the author created with prometheus-client."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast, final

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, generate_latest
from prometheus_client.core import InfoMetricFamily

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import InvalidArgumentError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector

_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "counter": ("_total", "_created"),
    "summary": ("_sum", "_count", "_created"),
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "info": ("_info",),
}
"""Suffixes by the type of a family."""

_NOT_IN_NAMES: Final = re.compile("[^a-zA-Z0-9_:]")

_log: Final = logging.getLogger("deltaloop.metrics")

_STANDARD: Final = (type(GC_COLLECTOR), type(PLATFORM_COLLECTOR), type(PROCESS_COLLECTOR))
"""Collectors for the process itself. They are equal in all registries, so the page contains only the first collector
of each kind.
"""


@final
class MetricsPage:
    """Renderer of several registries as one page. Calls must not overlap."""

    def __init__(self, own: CollectorRegistry, others: Sequence[CollectorRegistry]) -> None:
        """Check the registered names, or raise InvalidArgumentError; ``own`` has priority in later collisions."""
        self._own = own
        self._others = tuple(dict.fromkeys(others))
        self._errors = ErrorSummaries()
        taken: dict[str, str] = {}
        for collector, names in _collectors(own).items():
            take_names(taken, f"deltaloop's {type(collector).__name__}", names)
        for registry in self._others:
            for collector, names in _collectors(registry).items():
                owner = _owner(collector, names)
                collision = take_names(taken, owner, names)
                if collision is not None and not isinstance(collector, _STANDARD):
                    raise _collision_error(owner, *collision)

    def render(self) -> bytes:
        taken: dict[str, str] = {}
        own = list(self._own.collect())
        for family in own:
            take_names(taken, "deltaloop", names_of_family(family.name, family.type))
        parts = [generate_latest(_Families(own))]
        for registry in self._others:
            for collector, names in _collectors(registry).items():
                parts += self._rendered(collector, names, taken)
        return b"".join(parts)

    def _rendered(self, collector: Collector, names: Sequence[str], taken: dict[str, str]) -> Iterator[bytes]:
        owner = _owner(collector, names)
        try:
            for family in collector.collect():
                page = generate_latest(_Families([family]))
                collision = take_names(taken, owner, names_of_family(family.name, family.type))
                if collision is None:
                    yield page
                elif not isinstance(collector, _STANDARD):
                    self._left_out(owner, _collision_error(owner, *collision))
        except Exception as error:  # noqa: BLE001 - a failing metric must not hide the others
            self._left_out(owner, error)

    def _left_out(self, owner: str, error: Exception) -> None:
        self._errors.log(
            _log,
            logging.WARNING,
            "omitting a metric from the page",
            error,
            now=time.monotonic(),
            extra={"metric": owner},
            again=logging.DEBUG,
        )


@final
class Collision(NamedTuple):
    """Name that two metrics use."""

    name: str
    owner: str


def names_of_family(name: str, kind: str) -> tuple[str, ...]:
    """Return all names that a family uses. ``kind`` is its type, for example ``counter``."""
    return (name, *(name + suffix for suffix in _SUFFIXES.get(kind, ())))


def take_names(taken: dict[str, str], owner: str, names: Iterable[str]) -> Collision | None:
    """Add names with their owner, or return the first collision without adding a name."""
    written = [_NOT_IN_NAMES.sub("_", name) for name in names]
    for name in written:
        if name in taken:
            return Collision(name, taken[name])
    taken.update(dict.fromkeys(written, owner))
    return None


@final
class _Families:
    """Collected metrics as a collector that prometheus-client can render."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _collectors(registry: CollectorRegistry) -> Mapping[Collector, Sequence[str]]:
    """Return the registered collectors with their names. A registry's public API does not attribute errors to them."""
    known: object = getattr(registry, "_collector_to_names", None)
    if not isinstance(known, dict):
        return {cast("Collector", registry): ()}
    collectors = dict(cast("dict[Collector, Sequence[str]]", known))  # a copy, because other threads may register
    target = registry.get_target_info()
    if target:
        info = InfoMetricFamily("target", "Target metadata", value=target)
        return {cast("Collector", _Families([info])): ("target", "target_info"), **collectors}
    return collectors


def _owner(collector: Collector, names: Sequence[str]) -> str:
    """Return a metric's name and class for its author."""
    kind = type(collector).__qualname__
    return f"{kind} {names[0]!r}" if names else kind


def _collision_error(owner: str, name: str, other: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"must be unique, got {name!r} in {owner} of the program and in {other}. Rename the former, or remove its "
        "registry from ProgramMetrics(registries=...).",
        argument="metric name",
    )
