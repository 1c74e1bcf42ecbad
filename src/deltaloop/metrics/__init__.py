"""Prometheus behind the hooks of the other rooms: numbers come out under upstream's names.

This room owns the adapters from hook protocols to prometheus-client, one module for each room that has hooks. It needs
the extra ``metrics``, and imports it when an adapter is made, not before.
"""

from deltaloop.metrics.cache import InformerMetrics as InformerMetrics
from deltaloop.metrics.client import RestClientMetrics as RestClientMetrics
from deltaloop.metrics.leaderelection import LeaderMetrics as LeaderMetrics
from deltaloop.metrics.runtime import ProgramMetrics as ProgramMetrics
from deltaloop.metrics.runtime import ReconcileMetrics as ReconcileMetrics
from deltaloop.metrics.workqueue import WorkQueueMetrics as WorkQueueMetrics
