"""Rules in CRDs (``x-kubernetes-validations``): what expressions see of an object, and what is wrong when they say no.

What each module is about::

    names           fields of objects as identifiers of the language
    declarations    a schema as types of the language, with how large values can be
    values          a value as expressions see it
    compiled        the rules of a schema, compiled: a tree beside the schema's
    definitions     what is wrong with rules when a CRD is written: types, costs, what cannot be compared
    evaluation      what rules say of an object when it is written
"""
