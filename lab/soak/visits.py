"""Informers that stay, and visitors: each makes a client, an informer and two handlers, uses them, and leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import final

from deltaloop.api import kinds
from deltaloop.cache import HandlerFuncs, InformerFactory, Registration
from deltaloop.client import Client
from lab.soak.work import LABEL, PLAN


@final
class Visits:
    """The visitors of one program.

    Attributes:
        events: How many events their handlers, and the one that stays, have seen.
    """

    def __init__(self, factory: InformerFactory, *, connect: Callable[[], Client], leak: str = "") -> None:
        """Have one handler that stays.

        Args:
            factory: Of the informers that stay; it is left by whoever made it.
            connect: Makes a visitor's client.
            leak: What they leave behind on purpose, one of ``LEAKS``.
        """
        self.events = 0
        self._factory = factory
        self._connect = connect
        self._leak = leak
        self.watch()

    def watch(self) -> Registration:
        """Add a handler to the informer that stays."""
        handler = HandlerFuncs(on_add=self._saw, on_update=lambda _, new: self._saw(new))
        return self._factory.informer(PLAN).add_event_handler(handler)

    def _saw(self, obj: object) -> None:
        del obj
        self.events += 1

    async def visit(self) -> None:
        """Come, look, and leave nothing behind; unless told to."""
        registration = self.watch()
        client = self._connect()
        try:
            async with InformerFactory(client) as factory:
                informer = factory.informer(kinds.CONFIG_MAP, label_selector=LABEL)
                informer.add_event_handler(HandlerFuncs(on_add=self._saw))
                factory.start()
                await factory.wait_for_sync(timeout=20.0)
        finally:
            if self._leak != "handlers":
                self._factory.informer(PLAN).remove_event_handler(registration)
            await client.close()
            if self._leak == "threads":
                threading.Thread(target=threading.Event().wait, daemon=True).start()
