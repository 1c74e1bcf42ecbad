"""Write YAML that all readers interpret equally: PyYAML, Go, and YAML 1.2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast, final

import yaml

from deltaloop.api.yaml_reader import looks_like_text

_dump = cast("Callable[..., str]", yaml.dump)  # noqa: TID251 - here
_WIDTH: Final = 120
_FOLDED: Final = re.compile("[\x85\u2028\u2029]")


class _Dumper(yaml.SafeDumper):
    indents_lists = False

    def ignore_aliases(self, data: Any) -> bool:
        _ = data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of lists if ``indents_lists`` is set."""
        super().increase_indent(flow=flow, indentless=indentless and not self.indents_lists)


@final
class _IndentingDumper(_Dumper):
    indents_lists = True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    _ = dumper
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"' if _FOLDED.search(text) else None)


class _TakenForMore:
    """Pattern for text that Go's reader does not read as text, so that the emitter quotes it."""

    @staticmethod
    def match(text: str) -> bool:
        """Return whether Go's reader does not read ``text`` as text."""
        return not looks_like_text(text)


_Dumper.add_representer(str, _text)
# Add it after PyYAML's own patterns. The function is untyped.
_add_pattern = cast("Callable[[str, object, None], None]", _Dumper.add_implicit_resolver)  # pyright: ignore[reportUnknownMemberType]
_add_pattern("tag:yaml.org,2002:go", _TakenForMore, None)


def write_yaml(documents: Iterable[object], *, indents_lists: bool = False, short_in_one_line: bool = False) -> str:
    """Return JSON values as YAML documents, separated by ``---``."""
    flow = None if short_in_one_line else False
    dumper = _IndentingDumper if indents_lists else _Dumper
    written = [
        _dump(each, Dumper=dumper, sort_keys=False, width=_WIDTH, allow_unicode=True, default_flow_style=flow)
        for each in documents
    ]
    return "---\n".join(written)
