"""Published bugs of operators, rebuilt as small controllers: what was wrong, the same mended, and what the user did.

Each is made from the steps that its report describes. ConfigMaps stand for clusters, Pods, sets and volumes: what is
wrong is the order of writes, what is believed of old news, or what has to be seen, and not the kinds. Where Kubernetes
itself has to do something, ``outside.py`` does. ``make -C lab simulate-bugs`` looks for all.
"""
