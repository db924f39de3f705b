"""Which files a run's events say were written: only calls that came back with success count."""

from __future__ import annotations

from gemtui.agent.events import AgentEvent, ResultStatus, ToolResult, ToolUse
from gemtui.transcript.tools import ToolKind, asked_path, kind_of


class WrittenFiles:
    """Fed with a run's events; `paths` holds each file once, in the order of its first success.

    Paths stand as the calls named them: relative ones mean the run's folder.
    """

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self._asked: dict[str, str] = {}

    def add(self, event: AgentEvent) -> None:
        """Take one event in."""
        match event.payload:
            case ToolUse(tool_name=name, tool_use_id=id, input=args):
                path = asked_path(args)
                if path and kind_of(name) in (ToolKind.WRITE, ToolKind.EDIT):
                    self._asked[id] = path
            case ToolResult(tool_use_id=id, status=ResultStatus.SUCCESS) if id in self._asked:
                self.paths[self._asked[id]] = None
            case _:
                pass
