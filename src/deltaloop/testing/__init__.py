"""Test tools for us and for users: virtual time, a pytest plugin with servers, programs that crash, a failing network.

``Harness`` runs controllers that crash and restart, ``eventually`` asserts that something becomes true, ``VirtualLoop``
makes waits take no time, ``Relay`` is a network that fails on demand; the fixtures are in ``pytest_plugin``. This room
may import everything; nothing of the product imports it.

A name is imported when it is first used: pytest loads the plugin in every project that has deltaloop installed, which
must not wait for what it does not use.
"""

from deltaloop._internal.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, __file__)
