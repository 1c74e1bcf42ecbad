"""The built-in kinds for type checkers and editors: a stub for each group and version, and nothing at run time.

``from deltaloop.types import apps_v1`` stands below ``if TYPE_CHECKING:``. The stubs are made by ``tools/kind_types``;
``docs/how-to/kinds.md`` describes their use.
"""
