"""Predicates that filter changes: pass them as ``predicates=`` to ``dl.controller`` and ``dl.Watch``."""

from deltaloop.runtime.core.changes import Change as Change
from deltaloop.runtime.core.changes import Predicate as Predicate
from deltaloop.runtime.core.predicates import And as And
from deltaloop.runtime.core.predicates import AnnotationsChanged as AnnotationsChanged
from deltaloop.runtime.core.predicates import GenerationChanged as GenerationChanged
from deltaloop.runtime.core.predicates import HasLabels as HasLabels
from deltaloop.runtime.core.predicates import LabelsChanged as LabelsChanged
from deltaloop.runtime.core.predicates import Not as Not
from deltaloop.runtime.core.predicates import Or as Or
from deltaloop.runtime.core.predicates import PathChanged as PathChanged
from deltaloop.runtime.core.predicates import ResourceVersionChanged as ResourceVersionChanged
from deltaloop.runtime.core.predicates import When as When
from deltaloop.runtime.core.predicates import Where as Where
