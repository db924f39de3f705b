"""The prompts that Gemini CLI keeps beside its sessions, in `logs.json`.

Interactive starts write there what was typed. The prompts remain when a session's file is gone
(assets/gemini-cli.md#places).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from gemtui.files import read_small
from gemtui.jsonin import loads
from gemtui.transcript.parts import instant, objects, string

_LIMIT = 64 * 1024 * 1024


class TypedPrompt(NamedTuple):
    """A prompt that was typed.

    `path`: the file it is in. `session`: the session's id. `time`: None if unknown.
    """

    path: Path
    session: str
    text: str
    time: datetime | None


def typed_prompts(home: Path, id: str) -> list[TypedPrompt]:
    """Return the prompts of the sessions whose id begins with `id`, in the order of the files.

    `home`: the CLI's folder. If an id equals `id`, only its prompts are returned. Unreadable files
    are skipped.
    """
    prompts = [prompt for prompt in all_prompts(home) if prompt.session.startswith(id)]
    return [prompt for prompt in prompts if prompt.session == id] or prompts


def all_prompts(home: Path) -> Iterator[TypedPrompt]:
    """Yield all prompts, in the order of the files; unreadable files are skipped."""
    paths = list[Path]()
    with suppress(OSError):
        paths = sorted((home / "tmp").glob("*/logs.json"))
    for path in paths:
        with suppress(OSError, orjson.JSONDecodeError):
            for entry in objects(loads(read_small(path, _LIMIT))):
                session, text = string(entry.get("sessionId")), string(entry.get("message"))
                if session and text and entry.get("type") == "user":
                    yield TypedPrompt(path, session, text, instant(entry.get("timestamp")))
