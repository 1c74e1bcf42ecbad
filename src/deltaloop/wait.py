"""Conditions for ``Client.wait_for``: ``await client.wait_for(POD, "web", dl.wait.ready(), timeout=60)``.

    deleted()                            the object is deleted, or replaced by a new object of the same name
    created()                            the object exists
    current()                            the object matches its spec (kstatus), for example a rollout is complete
    ready()                              the condition Ready is True
    established()                        a CustomResourceDefinition is served
    status_condition("Available")        a status condition has a status, by default "True"
    field_value("status.phase", "Bound") a field has a value; without a value argument, any value

You can also pass any object with the methods of ``WaitCondition``.
"""

from deltaloop.client.core.wait_conditions import Created as Created
from deltaloop.client.core.wait_conditions import Current as Current
from deltaloop.client.core.wait_conditions import Deleted as Deleted
from deltaloop.client.core.wait_conditions import FieldValue as FieldValue
from deltaloop.client.core.wait_conditions import StatusCondition as StatusCondition
from deltaloop.client.core.wait_conditions import WaitCondition as WaitCondition
from deltaloop.client.core.wait_conditions import created as created
from deltaloop.client.core.wait_conditions import current as current
from deltaloop.client.core.wait_conditions import deleted as deleted
from deltaloop.client.core.wait_conditions import established as established
from deltaloop.client.core.wait_conditions import field_value as field_value
from deltaloop.client.core.wait_conditions import ready as ready
from deltaloop.client.core.wait_conditions import status_condition as status_condition
