"""The user's answer to a question about a call, as shown on the call's card."""

from __future__ import annotations

from collections.abc import Iterator

from gemtui.text import Clean, visible_line
from gemtui.transcript.display_model import DiffDisplay
from gemtui.transcript.displays import content_diff
from gemtui.transcript.model import Answer, Beyond, Consent, ToolCall
from gemtui.ui.draw.gutter_rows import GutterRow, wrapped_rows
from gemtui.ui.draw.lines import Line, Piece, own, wrap
from gemtui.ui.draw.theme import Look, Role
from gemtui.ui.transcript.card_body import draw_diff

_WORDS = {
    Consent.WAITS: "waiting for your answer",
    Consent.ALLOWED: "allowed by you",
    Consent.CHANGED: "changed by you",
    Consent.DENIED: "denied by you",
    Consent.STOPPED: "denied by you, and the run was stopped",
    Consent.ABANDONED: "denied, because nobody answered",
}
_BEYOND = {
    None: "",
    Beyond.RUN: ", and similar calls in this run",
    Beyond.ALWAYS: ", and similar calls from now on",
    Beyond.TAKEN_BACK: "; no longer for similar calls",
}
_LONG = 300
"""Maximum number of characters of a reason to show."""


def allowed_words(call: ToolCall) -> Clean:
    """Describe the user's answer to a call, or the rule that made asking unnecessary.

    The description of a denial includes the reason. Returns "" if there is neither.
    """
    answer = call.answer
    if call.rule and (answer is None or answer.consent is Consent.ALLOWED):
        return visible_line(f"allowed without asking, by {call.rule[:_LONG]}")
    if answer is None:
        return own("")
    whose = "a subagent's call, " if answer.subagent else ""
    reason = f": {answer.reason[:_LONG]}" if answer.reason else ""
    words = f"{_WORDS[answer.consent]}{_BEYOND[answer.beyond]}"
    return visible_line(f"{whose}{words}{reason}")


def draw_asked(call: ToolCall, look: Look, *, folded: bool) -> Iterator[Line]:
    """Yield what Gemini originally requested, if something else was run.

    This is the original command, or how the user's edits differ from Gemini's version of a file.
    """
    answer = call.answer
    if answer is None or answer.asked is None:
        return
    asked, ran = answer.asked.get("command"), call.args.get("command")
    if isinstance(asked, str) and isinstance(ran, str):
        for word, command in (("asked", asked), ("ran  ", ran)):
            text = visible_line(command[:_LONG] if folded else command)
            gutter = (Piece(own(f"{word} "), look[Role.MUTED]),)
            role = Role.MUTED if word == "asked" else Role.TEXT
            yield from wrapped_rows([GutterRow(gutter, (Piece(text, look[role]),))], look)
        return
    difference = _difference(call, answer)
    what = (
        "Gemini's call (−) and your edited call (+)"
        if difference
        else "ran with different arguments"
    )
    yield from wrap((Piece(own(what), look[Role.MUTED]),), look.width)
    if difference is not None and not folded:
        yield from draw_diff(difference, look, folded=False).lines


def _difference(call: ToolCall, answer: Answer) -> DiffDisplay | None:
    """Return the diff between Gemini's and the user's version of a file."""
    path = str(call.args.get("file_path", ""))
    match answer.asked, call.args:
        case {"content": str(asked)}, {"content": str(ran)}:
            return content_diff(path, asked, ran)
        case (
            {"old_string": str(old), "new_string": str(new)},
            {"old_string": str(before), "new_string": str(after)},
        ):
            return content_diff(path, before.replace(old, new) if old else new, after)
    return None
