"""What a scrape of a registry says, read from its text."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest


def text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def samples(registry: CollectorRegistry) -> dict[str, float]:
    lines = [line for line in text(registry).splitlines() if not line.startswith("#")]
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def kinds(registry: CollectorRegistry) -> dict[str, str]:
    lines = text(registry).splitlines()
    return {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
