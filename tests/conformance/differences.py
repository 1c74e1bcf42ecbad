"""What the embedded server does not do as the real one does: the cases that fail on it, and why.

``docs/embedded-server.md`` lists the same for readers. A case here that begins to pass fails the suite, so that its
line goes.
"""

from __future__ import annotations

from typing import Final

BUILT_IN_DEFAULTS: Final = "built-in kinds get no defaults: their objects are stored as they come"
BUILT_IN_RULES: Final = "built-in kinds are not validated beyond their metadata and the types of their fields"
ONLY_JSON: Final = "answers are JSON; clients that ask for YAML alone turn it into YAML themselves"

# Case (module without ``test_``, and name) -> reason.
DIFFERENCES: Final = {
    "errors.test_a_pod_without_containers": BUILT_IN_RULES,
    "negotiation.test_yaml_answers": ONLY_JSON,
    "writes.test_defaults_of_a_pod": BUILT_IN_DEFAULTS,
    "writes.test_defaults_of_a_deployment": BUILT_IN_DEFAULTS,
    "writes.test_defaults_of_a_service": BUILT_IN_DEFAULTS,
    "writes.test_a_pods_spec": BUILT_IN_RULES,
}
