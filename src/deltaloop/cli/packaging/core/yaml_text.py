"""YAML as people write manifests: lists are indented, and nothing refers to what stands elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

import yaml

_WIDTH: Final = 120


@final
class _ManifestDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write what comes twice twice: an alias is read by nobody."""
        _ = data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of lists."""
        _ = indentless
        super().increase_indent(flow=flow, indentless=False)


def yaml_text(documents: Iterable[object]) -> str:
    """Return documents as YAML, with a line between two."""
    written = [
        yaml.dump(each, Dumper=_ManifestDumper, sort_keys=False, width=_WIDTH, allow_unicode=True) for each in documents
    ]
    return "---\n".join(written)
