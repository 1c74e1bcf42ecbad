"""Prometheus adapters for the metrics hooks of other packages, with upstream's metric names (extra ``metrics``)."""

from deltaloop.metrics.cache import InformerMetrics as InformerMetrics
from deltaloop.metrics.client import RestClientMetrics as RestClientMetrics
from deltaloop.metrics.leaderelection import LeaderMetrics as LeaderMetrics
from deltaloop.metrics.runtime import ProgramMetrics as ProgramMetrics
from deltaloop.metrics.runtime import ReconcileMetrics as ReconcileMetrics
from deltaloop.metrics.workqueue import WorkQueueMetrics as WorkQueueMetrics
