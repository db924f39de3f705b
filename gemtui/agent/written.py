"""The files that a run wrote, by its events: only calls that ended with success count."""

from __future__ import annotations

from gemtui.agent.events import AgentEvent, ResultStatus, ToolResult, ToolUse
from gemtui.transcript.tools import ToolKind, asked_path, kind_of


class WrittenFiles:
    """Collects the files that a run wrote; `paths` in the order of their first success.

    Paths are as the calls named them: relative ones are below the run's folder.
    """

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._asked: dict[str, str] = {}

    def add(self, event: AgentEvent) -> None:
        """Take one more event into account."""
        match event.payload:
            case ToolUse(tool_name=name, tool_use_id=id, input=args):
                path = asked_path(args)
                if path and kind_of(name) in (ToolKind.WRITE, ToolKind.EDIT):
                    self._asked[id] = path
            case ToolResult(tool_use_id=id, status=ResultStatus.SUCCESS) if id in self._asked:
                self.paths[self._asked[id]] = None
            case _:
                pass
