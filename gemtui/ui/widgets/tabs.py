"""The first words of every screen: the program's modes, and whether a run is alive."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.style import Style

_MODES = (("app.sessions", "1 Sessions"), ("app.runs", "2 Run"))


def tabs(current: str, *, run_mark: str = "") -> Sequence[Content]:
    """The name, then the modes with the current one (by its key's id) in brackets.

    `run_mark`: the sign that stands at the run mode. A click on a mode is its key.
    """
    return (Content.styled("gemtui", "bold $text-accent"), *_modes(current, run_mark))


def _modes(current: str, run_mark: str) -> Sequence[Content]:
    words = []
    for id, label in _MODES:
        text = f"{label} {run_mark}".rstrip() if id == "app.runs" else label
        here = id == current
        word = Content.styled(f"[{text}]" if here else f" {text} ", "bold" if here else "dim")
        words.append(word.stylize(Style.from_meta({"key": id})))
    return (Content("").join(words),)
