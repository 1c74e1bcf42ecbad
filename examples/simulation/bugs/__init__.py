"""Published bugs of operators, rebuilt as small controllers: what was wrong, the same mended, and what the user did.

Each is made from the steps that its report describes. ConfigMaps stand for clusters, Pods, sets and volumes: what is
wrong is the order of writes, or what is believed of old news, and not the kinds. ``make simulate-bugs`` looks for all.
"""
