"""YAML that means the same to every reader: PyYAML's, Go's, and those of YAML 1.2.

PyYAML leaves text plain that it reads as text itself. Go's reader (see ``yaml_reader``) takes some of that for more:
``n`` for false, ``1e3`` and ``0o17`` for numbers. And PyYAML puts U+0085, U+2028 and U+2029 as they are within single
quotes, where every reader folds them. So such text is quoted here, and those characters are written as escapes.
"""

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
        """Write what comes twice twice: an alias is read by nobody."""
        _ = data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the items of lists, if that is asked for."""
        super().increase_indent(flow=flow, indentless=indentless and not self.indents_lists)


@final
class _IndentingDumper(_Dumper):
    indents_lists = True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    _ = dumper
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"' if _FOLDED.search(text) else None)


class _TakenForMore:
    """Stands for a pattern: text that is no text to Go's reader, so that the emitter quotes it."""

    @staticmethod
    def match(text: str) -> bool:
        """Tell whether it is."""
        return not looks_like_text(text)


_Dumper.add_representer(str, _text)
# Behind PyYAML's own patterns; its function has no types.
_add_pattern = cast("Callable[[str, object, None], None]", _Dumper.add_implicit_resolver)  # pyright: ignore[reportUnknownMemberType]
_add_pattern("tag:yaml.org,2002:go", _TakenForMore, None)


def write_yaml(documents: Iterable[object], *, indents_lists: bool = False, short_in_one_line: bool = False) -> str:
    """Return JSON values as YAML documents, with a line between two.

    Args:
        documents: Of mappings, lists, text, numbers, truth values and None; keys keep their order.
        indents_lists: Write the items of a list further right than its name, as people write manifests.
        short_in_one_line: Write mappings and lists that hold no others in one line.
    """
    flow = None if short_in_one_line else False
    dumper = _IndentingDumper if indents_lists else _Dumper
    written = [
        _dump(each, Dumper=dumper, sort_keys=False, width=_WIDTH, allow_unicode=True, default_flow_style=flow)
        for each in documents
    ]
    return "---\n".join(written)
