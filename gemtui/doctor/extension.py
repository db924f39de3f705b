"""What `gemtui doctor` finds of gemtui's extension for Gemini CLI."""

from __future__ import annotations

from collections.abc import Iterator

from gemtui.extension.status import INSTALL, ExtensionState, HookState

_BROKEN = (HookState.GONE, HookState.OLDER)
"""What is not by choice."""


def extension_problems(extension: ExtensionState) -> Iterator[str]:
    """Yield what is broken, with what to do about it."""
    if extension.problem is not None and extension.state in _BROKEN:
        yield extension.problem


def extension_rows(extension: ExtensionState) -> Iterator[tuple[str, str]]:
    """Yield what a person is told of it."""
    match extension.state:
        case HookState.READY:
            yield "extension", f"{extension.folder}: its hooks run in every session of Gemini CLI"
        case HookState.MISSING:
            yield "extension", f"not installed; what it is for says: {INSTALL}"
        case _:
            yield "extension", str(extension.problem)
