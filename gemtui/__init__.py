"""Read Google's Gemini CLI sessions and run the CLI, from a terminal or a program.

    from gemtui import list_sessions, load_session

    for session in list_sessions():
        print(session.id, session.title)
    for message in load_session("latest").messages:
        print(message.role, message.content)

    from gemtui import GeminiAdapter

    async for event in GeminiAdapter().run("Explain this project"):
        print(event.type, event.payload)

The public names are imported lazily, on first use, so that `import gemtui` stays fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gemtui.agent.approval import Approval, ApprovalRequest
    from gemtui.agent.detect import Detected, detect_cli
    from gemtui.agent.events import (
        AgentEvent,
        Done,
        DoneStatus,
        ErrorSaid,
        Init,
        PermissionRequest,
        Prompted,
        ResultStatus,
        TextDelta,
        TextSaid,
        Thinking,
        ToolResult,
        ToolUse,
    )
    from gemtui.agent.options import AgentOptions
    from gemtui.agent.output import read_ndjson
    from gemtui.api import DroppedRecord, Session, list_sessions, load_session
    from gemtui.errors import (
        CliNotFound,
        ConfigError,
        DeletionFailed,
        GateError,
        GemtuiError,
        NotASession,
        OptionError,
        ProviderError,
        SessionAmbiguous,
        SessionNotFound,
        SessionTooLarge,
        StoreUnreadable,
    )
    from gemtui.policy.engine.decide import Explanation, Setup, decide
    from gemtui.policy.file.levels import Level, PermissionPolicy
    from gemtui.policy.file.policy import Policy
    from gemtui.policy.model.rules import ApprovalMode, Call, Decision, Finding, Rule, Tier
    from gemtui.provider import GeminiCliProvider, ProviderResult
    from gemtui.runs.adapter import GeminiAdapter
    from gemtui.sessions.catalog.summary import Flag, Summary
    from gemtui.sessions.store.store import Problem
    from gemtui.transcript.unified import UnifiedMessage, parse_message
    from gemtui.transcript.usage import Usage

__all__ = [
    "AgentEvent",
    "AgentOptions",
    "Approval",
    "ApprovalMode",
    "ApprovalRequest",
    "Call",
    "CliNotFound",
    "ConfigError",
    "Decision",
    "DeletionFailed",
    "Detected",
    "Done",
    "DoneStatus",
    "DroppedRecord",
    "ErrorSaid",
    "Explanation",
    "Finding",
    "Flag",
    "GateError",
    "GeminiAdapter",
    "GeminiCliProvider",
    "GemtuiError",
    "Init",
    "Level",
    "NotASession",
    "OptionError",
    "PermissionPolicy",
    "PermissionRequest",
    "Policy",
    "Problem",
    "Prompted",
    "ProviderError",
    "ProviderResult",
    "ResultStatus",
    "Rule",
    "Session",
    "SessionAmbiguous",
    "SessionNotFound",
    "SessionTooLarge",
    "Setup",
    "StoreUnreadable",
    "Summary",
    "TextDelta",
    "TextSaid",
    "Thinking",
    "Tier",
    "ToolResult",
    "ToolUse",
    "UnifiedMessage",
    "Usage",
    "decide",
    "detect_cli",
    "list_sessions",
    "load_session",
    "parse_message",
    "read_ndjson",
]

if not TYPE_CHECKING:  # type checkers use the imports above and reject unknown names
    _PLACES = {
        "gemtui.agent.approval": ("Approval", "ApprovalRequest"),
        "gemtui.agent.detect": ("Detected", "detect_cli"),
        "gemtui.agent.events": (
            "AgentEvent",
            "Done",
            "DoneStatus",
            "ErrorSaid",
            "Init",
            "PermissionRequest",
            "Prompted",
            "ResultStatus",
            "TextDelta",
            "TextSaid",
            "Thinking",
            "ToolResult",
            "ToolUse",
        ),
        "gemtui.agent.output": ("read_ndjson",),
        "gemtui.agent.options": ("AgentOptions",),
        "gemtui.api": ("DroppedRecord", "Session", "list_sessions", "load_session"),
        "gemtui.policy.file.levels": ("Level", "PermissionPolicy"),
        "gemtui.policy.file.policy": ("Policy",),
        "gemtui.policy.engine.decide": ("Explanation", "Setup", "decide"),
        "gemtui.policy.model.rules": (
            "ApprovalMode",
            "Call",
            "Decision",
            "Finding",
            "Rule",
            "Tier",
        ),
        "gemtui.provider": ("GeminiCliProvider", "ProviderResult"),
        "gemtui.runs.adapter": ("GeminiAdapter",),
        "gemtui.sessions.store.store": ("Problem",),
        "gemtui.sessions.catalog.summary": ("Flag", "Summary"),
        "gemtui.transcript.usage": ("Usage",),
        "gemtui.transcript.unified": ("UnifiedMessage", "parse_message"),
    }

    def __getattr__(name: str) -> object:
        """Import a public name from its module when it is first used (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        home = next((module for module, names in _PLACES.items() if name in names), "gemtui.errors")
        globals()[name] = value = getattr(import_module(home), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
