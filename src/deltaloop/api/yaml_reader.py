"""YAML as Go's reader sees it, so that a manifest means here what it means to kubectl.

PyYAML's loaders read ``2026-01-02`` as a date, ``12:30:45`` as the sexagesimal number 45045 and ``1e3`` as text. Go's
reader (sigs.k8s.io/yaml) does none of that. This module holds the only loader of the project; a lint bans the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import yaml

from deltaloop.api.errors import InvalidInputError

# PyYAML may be built without libyaml; its own loader is slower and reads the same.
_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# The one place where a loader of PyYAML is called.
_load_all = cast("Callable[..., Iterator[Any]]", yaml.load_all)  # noqa: TID251

_INT = re.compile(r"^[-+]?(0b[0-1_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT = re.compile(r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$")
_DROPPED = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


# PyYAML's safe loader with Go's idea of numbers and without times.
_GoLikeLoader: Any = type("_GoLikeLoader", (_BaseLoader,), {})


def _construct_int(loader: Any, node: Any) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if digits != "0" and re.match(r"^0[0-7]", digits):
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _construct_float(loader: Any, node: Any) -> float:
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_GoLikeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in _BaseLoader.yaml_implicit_resolvers.items()
}
_GoLikeLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_GoLikeLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_GoLikeLoader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_GoLikeLoader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def read_yaml(text: str | bytes, *, source: str = "YAML") -> Any:
    """Read one YAML (or JSON) document.

    Args:
        text: The document.
        source: What to call it in an error, such as a file's name.

    Raises:
        InvalidInputError: If it is not YAML, or holds more than one document.
    """
    documents = list(read_yaml_documents(text, source=source))
    if len(documents) > 1:
        raise InvalidInputError(f"{source} holds {len(documents)} documents where one was expected")
    return documents[0] if documents else None


def read_yaml_documents(text: str | bytes, *, source: str = "YAML") -> Iterator[Any]:
    """Read the documents of a YAML stream; empty ones are passed over.

    Raises:
        InvalidInputError: If it is not YAML; the message has the line and column, never the text.
    """
    try:
        documents = list(_load_all(text, Loader=_GoLikeLoader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{source} is not valid YAML{_place(error)}") from None
    yield from (document for document in documents if document is not None)


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return where + (f": {problem}" if problem else "")
