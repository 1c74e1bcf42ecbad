"""What ``with`` opens and closes, for the client and the factory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Scope(ABC):
    """Opened and closed by ``with``, or by hand; Ctrl-C while it opens closes what has begun."""

    @abstractmethod
    def open(self) -> None:
        """Begin; what is raised has left nothing behind that has to be closed."""

    @abstractmethod
    def close(self) -> None:
        """End it; repeating it is fine."""

    def __enter__(self) -> Self:
        try:
            self.open()
        except Exception:
            raise
        except BaseException:  # Ctrl-C: nobody else will close what has begun
            self.close()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
