"""Kinds from classes: a class becomes a CustomResourceDefinition; what a change of one breaks; rules in schemas.

``custom_resource`` makes a class a kind and checks it at once, ``generate_crd`` makes its definition,
``breaking_changes`` compares two. Annotations say what a type alone does not: ``list_map_keys``, ``Quantity``,
``field_rules``.

The embedded server has its rules from here: what a schema's rules mean (``rules``) is the same to both. It may import
what an object is, schemas and the expression language.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
