"""PodTemplate: a template that nothing makes pods from by itself.

Source: Kubernetes pkg/registry/core/podtemplate/strategy.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.apiserver.core.kinds.pod_warnings import pod_warnings
from deltaloop.apiserver.core.strategy import Strategy

STRATEGY: Final = Strategy(
    warn_new=lambda template: pod_warnings(template.get("template"), "template."),
)
