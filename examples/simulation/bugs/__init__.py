"""Published bugs of operators, rebuilt as small controllers.

Each bug has the broken reconciler, a fixed one, and the steps of the user from its report. ConfigMaps represent
clusters, Pods, sets and volumes, because the bugs depend on the order of writes, stale caches or missed states, not on
the kinds. ``make -C lab simulate-bugs`` searches for all bugs.
"""
