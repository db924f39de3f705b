"""Prompts that wait behind a run that has ended: each begins a run that goes on with its session.

A prompt is taken by renaming its file to the id of the run that is to begin with it, before that
run begins. So it is sent at most once, and where a process is killed in the midst, the run's folder
tells whether it was sent; else it waits again. Of several gemtui one sends: who holds the lock.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import TypeVar

from gemtui.agent.run_folder import RunFolder
from gemtui.agent.steering import Steering
from gemtui.errors import GemtuiError
from gemtui.files import is_folder

STEP = 0.1
"""Seconds between two looks whether another gemtui still sends."""
PATIENCE = 10.0
"""Seconds for which it may."""

T = TypeVar("T")
Begin = Callable[[str, str], Awaitable[T | None]]
"""Begins a run with this prompt and this id; None = it did not."""


async def send_next(run: RunFolder, begin: Begin[T], *, prompt: str | None = None) -> T | None:
    """Begin a run with what waits behind one that has ended; the rest waits behind the new one.

    `prompt`: the id of the prompt to send, None = the next one. Returns what `begin` does; None:
    nothing waits, it did not begin, or another gemtui is sending. Raises OSError, and what `begin`
    raises. Where nothing began all waits as before.
    """
    steering = Steering.of(run)
    if not await asyncio.to_thread(steering.undelivered):
        return None
    with ExitStack() as stack:
        if not await _alone(steering, stack):
            return None
        await asyncio.to_thread(_settle, run)
        id = str(uuid.uuid4())
        sent = await asyncio.to_thread(steering.claim, id, prompt)
        if sent is None:
            return None
        try:
            begun = await begin(sent.text, id)
        except (GemtuiError, OSError):
            await asyncio.to_thread(steering.give_back, id)
            raise
        except BaseException:
            _settle(run)
            raise
        if begun is None:
            await asyncio.to_thread(steering.give_back, id)
            return None
        with suppress(OSError):  # it has begun, which is found out again
            await asyncio.to_thread(steering.confirm, id)
            await asyncio.to_thread(_settle, run)
        return begun


def queue_again(run: RunFolder, prompt: str) -> None:
    """Have a prompt wait behind a run that broke off, before all others; once. Raises OSError.

    Nothing is done while somebody is sending what waits.
    """
    steering = Steering.of(run)
    with steering.sending() as alone:
        if alone and prompt not in (each.text for each in steering.prompts()):
            steering.move(steering.queue(prompt).id, 0)


async def _alone(steering: Steering, stack: ExitStack) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                locked = ExitStack()
                if await asyncio.to_thread(locked.enter_context, steering.sending()):
                    stack.push(locked)
                    return True
                locked.close()
                await asyncio.sleep(STEP)
    return False


def settle(run: RunFolder) -> None:
    """Put right what waits behind a run that has ended, unless somebody is sending it.

    What was said to it in its midst and did not arrive waits as prompts. Raises OSError.
    """
    steering = Steering.of(run)
    if not steering.undelivered():
        return
    with steering.sending() as alone:
        if alone:
            _settle(run)


def _settle(run: RunFolder) -> None:
    steering = Steering.of(run)
    steering.words_to_prompts()
    for id in steering.claimed():
        begun = RunFolder(run.path.parent / id)
        if begun.owner() is not None or begun.exit() is not None:
            steering.confirm(id)
        elif not begun.is_starting():
            steering.give_back(id)
    if (last := went_on(run)) is not None:
        steering.hand_on(Steering.of(last))


def went_on(run: RunFolder) -> RunFolder | None:
    """Return the last of the runs that began with what waited behind this one; None = no run."""
    seen, last = {run.id}, None
    while (following := _following(last or run)) is not None and following.id not in seen:
        seen.add(following.id)
        last = following
    return last


def _following(run: RunFolder) -> RunFolder | None:
    begun = [each.run for each in Steering.of(run).sent() if each.run]
    folder = run.path.parent / begun[-1] if begun else None
    return RunFolder(folder) if folder is not None and is_folder(folder) else None


def hand_on(run: RunFolder, to: RunFolder) -> None:
    """Have what waits behind a run that has ended wait behind the one that goes on. Raises OSError.

    Nothing is done while somebody is sending it.
    """
    steering = Steering.of(run)
    if not steering.undelivered():
        return
    with steering.sending() as alone:
        if alone:
            _settle(run)
            steering.hand_on(Steering.of(to))
