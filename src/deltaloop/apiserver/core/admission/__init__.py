"""Admission: what may change or refuse a write that its user may do, plugin by plugin, in the real server's order."""
