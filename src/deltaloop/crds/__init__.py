"""Kinds from classes: generate CustomResourceDefinitions, find breaking changes, and evaluate rules in schemas.

``custom_resource`` declares a class as a kind, ``generate_crd`` returns its definition, and ``breaking_changes``
compares two definitions. Annotations such as ``list_map_keys``, ``Quantity`` and ``field_rules`` refine types.
"""

from deltaloop._internal.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
