"""Parsing of Accept headers; clauses are sorted by quality and then by position, without ``q=0``.

Source: apiserver pkg/endpoints/handlers/negotiation; goautoneg.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

YAML: Final = "application/yaml"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FOR_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")


@final
@dataclass(frozen=True, slots=True)
class AcceptClause:
    """Clause of an Accept header: a media type, and parameters such as ``as=Table``."""

    media_type: str
    parameters: Mapping[str, str]

    @property
    def accepts_json(self) -> bool:
        return self.media_type in ("application/json", "application/*", "*/*")

    @property
    def is_yaml(self) -> bool:
        return self.media_type == YAML


def wants_lines(pretty: str, user_agent: str) -> bool:
    """Return whether to indent JSON: on request, and for browsers, curl and Wget (``isPrettyPrint``)."""
    if pretty:
        return pretty in _TRUE
    return user_agent.startswith(_FOR_PEOPLE)


def parse_accept(header: str) -> tuple[AcceptClause, ...]:
    """Parse an Accept header. An empty header accepts all types."""
    if not header.strip():
        return (AcceptClause("*/*", {}),)
    found: list[tuple[float, AcceptClause]] = []
    for text in header.split(","):
        media_type, *written = (part.strip() for part in text.split(";"))
        parameters: dict[str, str] = {}
        for part in written:
            name, _, value = part.partition("=")
            parameters[name.strip().lower()] = value.strip().strip('"')
        quality = _quality(parameters.pop("q", "1"))
        if media_type and quality > 0:
            found.append((quality, AcceptClause(media_type.lower(), parameters)))
    found.sort(key=lambda pair: -pair[0])
    return tuple(clause for _, clause in found)


def failure_in_yaml(header: str) -> bool:
    """Return whether an error is sent in YAML. Clauses for other forms such as Tables are ignored."""
    for clause in parse_accept(header):
        if "as" not in clause.parameters and (clause.is_yaml or clause.accepts_json):
            return clause.is_yaml
    return False


def _quality(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 1.0
    return value if 0 <= value <= 1 else 1.0
