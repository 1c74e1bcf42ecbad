"""Base class of the client and the factory for ``with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Scope(ABC):
    """Context manager that can also be opened and closed by hand. Ctrl-C during ``open`` closes it."""

    @abstractmethod
    def open(self) -> None:
        """Open it. If it raises an ``Exception``, it must leave nothing to close."""

    @abstractmethod
    def close(self) -> None:
        """Close it. It can be called repeatedly."""

    def __enter__(self) -> Self:
        try:
            self.open()
        except Exception:
            raise
        except BaseException:  # Ctrl-C: __exit__ will not run
            self.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
