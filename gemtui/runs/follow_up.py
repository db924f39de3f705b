"""Send the queued prompts of a run that has ended; each begins a follow-up run.

A prompt is claimed by renaming its file to the id of the new run before that run begins. So it is
sent at most once. If a process is killed in between, the new run's folder shows whether it was
sent; otherwise it returns to the queue. Of several gemtui, the one that holds the lock sends.
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
"""Seconds between two checks whether another gemtui is still sending."""
PATIENCE = 10.0
"""Seconds to wait for another gemtui to finish sending."""

T = TypeVar("T")
Begin = Callable[[str, str], Awaitable[T | None]]
"""Begins a run with this prompt and this id; None = it did not."""


async def send_next(run: RunFolder, begin: Begin[T], *, prompt: str | None = None) -> T | None:
    """Begin a run with a queued prompt of an ended one, and move the queue to it.

    `prompt`: the id of the prompt to send; None = the next one. Returns the result of `begin`; None
    if the queue is empty, the run did not begin, or another gemtui is sending. Raises OSError, and
    the errors of `begin`. If no run began, the queue is unchanged.
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
        with suppress(OSError):  # the start is detected again later
            await asyncio.to_thread(steering.confirm, id)
            await asyncio.to_thread(_settle, run)
        return begun


def queue_again(run: RunFolder, prompt: str) -> None:
    """Put a prompt back at the front of an interrupted run's queue, once.

    Does nothing while another process is sending the queue. Raises OSError.
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
    """Repair the queue of a run that has ended, unless a process is sending it.

    Undelivered messages become prompts. Raises OSError.
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
    """Return the last run in the chain of follow-up runs; None = there is none."""
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
    """Move the queue of an ended run to the run that continues it.

    Does nothing while a process is sending it. Raises OSError.
    """
    steering = Steering.of(run)
    if not steering.undelivered():
        return
    with steering.sending() as alone:
        if alone:
            _settle(run)
            steering.hand_on(Steering.of(to))
