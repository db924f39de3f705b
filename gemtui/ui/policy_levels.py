"""Levels and lists of the simple view as a person changes them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gemtui.policy.document import Document
from gemtui.text import Clean, clean_line
from gemtui.ui.policies import Draft
from gemtui.ui.policy_edits import Edit, Make, set_levels
from gemtui.ui.screens.tool_list import ToolListScreen
from gemtui.ui.simple import Simple, read
from gemtui.ui.widgets.policy_simple import LISTS, MEANINGS, Field, with_list, with_value

if TYPE_CHECKING:
    from gemtui.ui.app import GemtuiApp


def with_choice(field: Field, value: str) -> Make:
    """Set one level, or unset it."""
    what = f"{field.label.lower()}: {value}"
    return lambda document: set_levels(document, with_value(read(document), field.id, value), what)


async def ask_list(app: GemtuiApp, draft: Draft, field: Field | None) -> Make:
    """Let a person change a list of tools; what comes of it may be no change."""
    if field is None or field.id not in LISTS:
        return _nothing
    before = getattr(read(draft.document), field.id) or ()
    screen = ToolListScreen(clean_line(field.label), Clean(MEANINGS[field.id]), before)
    chosen = await app.push_screen_wait(screen)
    return _nothing if chosen is None else partial(_set_list, field=field, chosen=chosen)


def _nothing(_document: Document) -> None:
    return None


def _set_list(document: Document, *, field: Field, chosen: tuple[str, ...]) -> Edit:
    simple: Simple = with_list(read(document), field.id, chosen)
    named = ", ".join(chosen) or "no such list"
    return set_levels(document, simple, f"{field.label.lower()}: {named}")
