"""The first words of every screen: the program's modes, and what is going on in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.content import Content
from textual.style import Style

_MODES = (("app.sessions", "1 Sessions"), ("app.runs", "2 Run"), ("app.policies", "3 Policy"))


def tabs(current: str, marks: Mapping[str, str]) -> Sequence[Content]:
    """The name, then the modes with the current one (by its key's id) in brackets.

    `marks`: the sign that stands at a mode, by the id of its key. A click on a mode is its key.
    """
    return (Content.styled("gemtui", "bold $text-accent"), *_modes(current, marks))


def _modes(current: str, marks: Mapping[str, str]) -> Sequence[Content]:
    words = []
    for id, label in _MODES:
        text = f"{label} {marks.get(id, '')}".rstrip()
        here = id == current
        word = Content.styled(f"[{text}]" if here else f" {text} ", "bold" if here else "dim")
        words.append(word.stylize(Style.from_meta({"key": id})))
    return (Content("").join(words),)
