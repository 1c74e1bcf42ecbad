"""Rules in CRDs (``x-kubernetes-validations``): compile, validate and evaluate them.

Modules::

    names           fields of objects as CEL identifiers
    declarations    schemas as CEL types, with the sizes of values
    values          values as expressions see them
    compiled        compiled rules of a schema, in a tree parallel to it
    definitions     validation of rules in a CRD: types, costs, and uses of oldSelf
    evaluation      evaluation of rules for an object
"""
