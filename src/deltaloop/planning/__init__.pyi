from deltaloop.planning.core.result import FieldChange as FieldChange
from deltaloop.planning.core.result import Numbers as Numbers
from deltaloop.planning.core.result import ObjectChange as ObjectChange
from deltaloop.planning.core.result import Plan as Plan
from deltaloop.planning.core.result import PlanProblem as PlanProblem
from deltaloop.planning.core.result import Restart as Restart
from deltaloop.planning.plans import plan as plan
