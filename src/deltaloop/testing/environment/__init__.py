"""Stands in for what makes a cluster run: scheduler, kubelet, and the controllers of Deployments, Jobs and their kin.

``Harness.environment`` starts it. Cores: ``core/models.py`` (which models there are), one module beside it for each,
``core/agenda.py`` (when what they do is due). The driver, ``driver.py``, watches and writes.
"""
