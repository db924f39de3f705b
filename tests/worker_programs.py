"""What the helper processes of tests do; apart from the tests, because importing those takes
long.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from gemtui.worker import Parent


def doubles(parent: Parent) -> None:
    print("This is for a person.", flush=True)
    parent.answer(lambda message: message * 2)


def sleeps(parent: Parent) -> None:
    parent.answer(lambda seconds: time.sleep(seconds))


def counts(parent: Parent) -> None:
    path = parent.receive()
    with suppress(OSError):
        while True:
            parent.receive()
    Path(path).write_text("all received")
    parent.send("written")


class Unknown:
    """Something that another version of gemtui doesn't know."""


def sends_unknown(parent: Parent) -> None:
    parent.send(Unknown())
