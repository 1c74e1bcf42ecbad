"""Several components that report through one recorder, such as the controllers of one program.

No core: it decides nothing. What is merged, limited and sent is ``recorder.py``'s, whose queue and task they share;
the component is part of what makes two events the same, so that no component's are counted as another's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from deltaloop.events.recorder import EventRecorder


@final
class ComponentRecorder:
    """Records Events as one component; ``EventRecorder.for_component`` makes it.

    Attributes:
        component: The reporting component, such as ``kubelet`` (``reportingComponent``, ``source.component``).
    """

    __slots__ = ("_recorder", "component")

    def __init__(self, recorder: EventRecorder, component: str) -> None:
        """Report through ``recorder``."""
        self._recorder = recorder
        self.component: str = component

    def event(
        self,
        obj: object,
        event_type: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: object | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Record that something happened to an object; as ``EventRecorder.event``, from any thread."""
        self._recorder.event(
            obj,
            event_type,
            reason,
            message,
            action=action,
            related=related,
            annotations=annotations,
            component=self.component,
        )

    async def flush(self, timeout: float) -> bool:
        """Wait until everything recorded so far has been sent or given up; as ``EventRecorder.flush``.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False if events were still waiting then; they stay queued.

        Raises:
            RuntimeError: If the recorder is not open.
        """
        return await self._recorder.flush(timeout)

    def __repr__(self) -> str:
        return f"<ComponentRecorder {self.component} of {self._recorder!r}>"
