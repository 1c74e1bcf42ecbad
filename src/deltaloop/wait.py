"""What ``Client.wait_for`` can wait for: ``await client.wait_for(POD, "web", dl.wait.ready(), timeout=60)``.

    deleted()                            gone, or replaced by another object of its name
    created()                            there
    current()                            as its spec asks for it, whatever its kind (kstatus): a rollout is complete
    ready()                              status condition Ready is True
    established()                        a CustomResourceDefinition is served
    status_condition("Available")        any status condition; its status is "True" unless said otherwise
    field_value("status.phase", "Bound") a field has a value; without one, any value

Anything with the methods of ``WaitCondition`` can be waited for, too.
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
