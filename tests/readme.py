"""The README's tables that follow from the program: `python -m tests.readme` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gemtui.config import settings
from gemtui.ui.kit.keys import KEYS, Where

README = Path(__file__).parents[1] / "README.md"
PLACES = (
    Where.LIST,
    Where.TRANSCRIPT,
    Where.SESSIONS,
    Where.PROMPT,
    Where.RUN,
    Where.RULES,
    Where.LEVELS,
    Where.POLICY,
    Where.APP,
)
NAMES = {Where.SESSIONS: "List and transcript"}


def keys() -> Iterator[str]:
    """A table for each place where keys act."""
    for place in PLACES:
        yield f"| {NAMES.get(place, place)} | |"
        yield "| --- | --- |"
        for key in KEYS:
            if key.where is place:
                faces = " ".join(f"`{face}`" for face in key.shown().split())
                yield f"| {faces} | {key.help} |"
        yield ""


def options() -> Iterator[str]:
    """A table of all settings."""
    yield "| setting and default | values | what it does |"
    yield "| --- | --- | --- |"
    for each in settings():
        yield f"| `{each.toml}` | {each.values} | {each.doc} |"
    yield ""


TABLES = {"keys": keys, "settings": options}


def rewritten(text: str) -> str:
    """The README with every table as it should be."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"README.md needs a place for {name}, between {begin}and {end}")
        text = before + begin + "\n" + "\n".join(table()) + "\n" + end + after
    return text


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text(encoding="utf-8")), encoding="utf-8")
