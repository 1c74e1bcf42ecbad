"""What a cluster needs for a program, made from what it declares: ``deltaloop package``.

Cores: ``core/manifests.py`` (the objects), ``core/chart.py`` (the same as a Helm chart), ``core/chart_values.py`` (what
its users may set), ``core/changes.py`` (where files differ). ``declared.py`` reads the program, ``files.py`` the disk.
"""
