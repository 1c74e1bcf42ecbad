"""Built-in kinds for type checkers and editors: a stub for each group and version, without runtime names.

Import them under ``if TYPE_CHECKING:``, for example ``from deltaloop.types import apps_v1``. ``tools/kind_types``
generates the stubs; ``docs/how-to/kinds.md`` describes their use.
"""
