"""What ``Client.wait_for`` can wait for: ``await client.wait_for(POD, "web", conditions.ready(), timeout=60)``.

    deleted()                            gone, or replaced by another object of its name
    created()                            there
    ready()                              status condition Ready is True
    established()                        a CustomResourceDefinition is served
    status_condition("Available")        any status condition; its status is "True" unless said otherwise
    field_value("status.phase", "Bound") a field has a value; without one, any value

Anything with the methods of ``WaitCondition`` can be waited for, too.
"""

from deltaloop.client.core.wait_conditions import (
    Created,
    Deleted,
    FieldValue,
    StatusCondition,
    WaitCondition,
    created,
    deleted,
    established,
    field_value,
    ready,
    status_condition,
)

__all__ = [
    "Created",
    "Deleted",
    "FieldValue",
    "StatusCondition",
    "WaitCondition",
    "created",
    "deleted",
    "established",
    "field_value",
    "ready",
    "status_condition",
]
