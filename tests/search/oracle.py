"""What a search must find, told plainly: replay everything, and look for the words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gemtui.sessions.read.conversation import transcript_of
from gemtui.sessions.read.session_log import SessionLog
from gemtui.transcript.model import Attachment, Author, Image, Message, Notice, Text, Thought
from gemtui.transcript.search import block_text


class Said(NamedTuple):
    """A block of a message of a session."""

    file: str
    message: str
    block: int
    kind: str
    text: str
    dropped: bool


def everything(path: Path) -> Iterator[Said]:
    """All that stands in a session file."""
    with SessionLog(path) as log:
        log.refresh()
        transcript = transcript_of(log, dropped=True, in_flight=False)
        for message in transcript:
            for number, block in enumerate(message.blocks):
                yield Said(
                    str(path),
                    message.id,
                    number,
                    _kind(message, number),
                    block_text(block),
                    message.dropped is not None,
                )


def _kind(message: Message, number: int) -> str:
    match message.blocks[number]:
        case Thought():
            return "thought"
        case Notice():
            return "notice"
        case Text() | Attachment() | Image():
            return "model" if message.author is Author.MODEL else "user"
        case _:
            return "tool"


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return re.findall(r"[^\W_]+", text.lower())


def has(text: str, wanted: str, *, exactly: bool = False) -> bool:
    """Whether a text has these words in a row; a single one also as a part of a name.

    Symbols count where there are no words, and where the words must be there `exactly` so.
    """
    found, row = words_of(text), words_of(wanted)
    if not row or exactly:
        plain, signs = (each.replace("\ufe0f", "").lower() for each in (text, wanted.strip('"')))
        if not all(sign in plain for sign in signs.split() if not sign.replace("_", "").isalnum()):
            return False
    if not row:
        return True
    if any(found[at : at + len(row)] == row for at in range(len(found))):
        return True
    return len(row) == 1 and row[0] in parts_of(text)


def parts_of(text: str) -> set[str]:
    """The parts of all names in a text that have a capital inside."""
    names = re.findall(r"[A-Za-z0-9]+", text)
    split = [re.sub(r"([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", r"\1\3 \2\4", name) for name in names]
    return {part.lower() for name in split if " " in name for part in name.split()}
