"""Send a finished run's queued prompts; each starts a follow-up run.

Before a follow-up run starts, it claims its prompt: the prompt's file is renamed to include the new
run's id, so that each prompt is sent at most once. If a process is killed after that, the new run's
folder shows whether the prompt was sent; if not, the prompt returns to the queue. If several gemtui
processes want to send, only the one that holds the queue's lock does.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import TypeVar

from gemtui.agent.prompt_queue import PromptQueue
from gemtui.agent.run_folder import RunFolder
from gemtui.errors import GemtuiError
from gemtui.files import is_folder

STEP = 0.1
"""Seconds between checks whether another gemtui process is still sending."""
PATIENCE = 10.0
"""Seconds to wait until another gemtui process has finished sending."""

T = TypeVar("T")
Begin = Callable[[str, str], Awaitable[T | None]]
"""A function that starts a run with the given prompt and id.

It returns None if the run did not start.
"""


async def send_next(run: RunFolder, begin: Begin[T], *, prompt: str | None = None) -> T | None:
    """Start a run with a prompt that was still queued when `run` ended.

    The rest of the queue moves to the new run. `begin`: starts a run with a given prompt and id;
    its result is returned. `prompt`: the id of the prompt to send; None means the next one. Returns
    None if the queue is empty, the run did not start, or another gemtui process is sending. Raises
    OSError and the errors of `begin`. If no run started, the queue is unchanged.
    """
    queue = PromptQueue.of(run)
    if not await asyncio.to_thread(queue.undelivered):
        return None
    with ExitStack() as stack:
        if not await _alone(queue, stack):
            return None
        await asyncio.to_thread(_settle, run)
        id = str(uuid.uuid4())
        sent = await asyncio.to_thread(queue.claim, id, prompt)
        if sent is None:
            return None
        try:
            begun = await begin(sent.text, id)
        except (GemtuiError, OSError):
            await asyncio.to_thread(queue.return_claimed, id)
            raise
        except BaseException:
            _settle(run)
            raise
        if begun is None:
            await asyncio.to_thread(queue.return_claimed, id)
            return None
        with suppress(OSError):  # `settle` would confirm it later
            await asyncio.to_thread(queue.confirm, id)
            await asyncio.to_thread(_settle, run)
        return begun


def queue_again(run: RunFolder, prompt: str) -> None:
    """Put an interrupted prompt back at the front of its run's queue.

    Does nothing if the prompt is already queued, or while another process is sending from the
    queue. Raises OSError.
    """
    queue = PromptQueue.of(run)
    with queue.sending() as alone:
        if alone and prompt not in (each.text for each in queue.prompts()):
            queue.move(queue.add_prompt(prompt).id, 0)


async def _alone(queue: PromptQueue, stack: ExitStack) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while True:
                locked = ExitStack()
                if await asyncio.to_thread(locked.enter_context, queue.sending()):
                    stack.push(locked)
                    return True
                locked.close()
                await asyncio.sleep(STEP)
    return False


def settle(run: RunFolder) -> None:
    """Repair the queue of a finished run, unless a process is sending from it.

    Undelivered messages become queued prompts, claimed prompts are confirmed or return to the
    queue, and the queue moves to the run that continues this one, if any. Raises OSError.
    """
    queue = PromptQueue.of(run)
    if not queue.undelivered():
        return
    with queue.sending() as alone:
        if alone:
            _settle(run)


def _settle(run: RunFolder) -> None:
    queue = PromptQueue.of(run)
    queue.messages_to_prompts()
    for id in queue.claimed():
        begun = RunFolder(run.path.parent / id)
        if begun.owner() is not None or begun.exit() is not None:
            queue.confirm(id)
        elif not begun.is_starting():
            queue.return_claimed(id)
    if (last := went_on(run)) is not None:
        queue.hand_over(PromptQueue.of(last))


def went_on(run: RunFolder) -> RunFolder | None:
    """Return the last of the runs that continue `run`; None if there are none."""
    seen, last = {run.id}, None
    while (following := _following(last or run)) is not None and following.id not in seen:
        seen.add(following.id)
        last = following
    return last


def _following(run: RunFolder) -> RunFolder | None:
    begun = [each.run for each in PromptQueue.of(run).sent() if each.run]
    folder = run.path.parent / begun[-1] if begun else None
    return RunFolder(folder) if folder is not None and is_folder(folder) else None


def hand_on(run: RunFolder, to: RunFolder) -> None:
    """Move a finished run's queue to the run that continues it.

    `to`: the run that continues it. Does nothing while a process is sending from the queue. Raises
    OSError.
    """
    queue = PromptQueue.of(run)
    if not queue.undelivered():
        return
    with queue.sending() as alone:
        if alone:
            _settle(run)
            queue.hand_over(PromptQueue.of(to))
