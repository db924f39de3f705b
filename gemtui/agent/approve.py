"""Answer the questions of a run by a function of a program."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.options import Approve
from gemtui.agent.tail import STEP

_HERE = 50
"""Looks for a question between two signs that somebody is there."""
_AGAIN = 0.5
"""Seconds until an answer that could not be written is written again."""


async def answer_questions(gate: GateFolder, approve: Approve) -> None:
    """Put every question of a run before `approve`, each as soon as it comes, until cancelled."""
    async with asyncio.TaskGroup() as answering:
        number, looks = 1, 0
        while True:
            if looks % _HERE == 0:
                with suppress(OSError):
                    await asyncio.to_thread(gate.here)
            looks += 1
            while gate.is_asked(number):
                request = await asyncio.to_thread(gate.question, number)
                if request is not None:
                    answering.create_task(_answer(gate, request, approve))
                number += 1
            await asyncio.sleep(STEP)


async def _answer(gate: GateFolder, request: ApprovalRequest, approve: Approve) -> None:
    try:
        answer = await approve(request)
        if not isinstance(answer, Approval):
            answer = Approval.deny(f"the program that was asked answered {type(answer).__name__}")
    except Exception as error:
        answer = Approval.deny(f"the program that was asked failed: {type(error).__name__}")
    while not await asyncio.to_thread(_write, gate, request.number, answer):
        await asyncio.sleep(_AGAIN)


def _write(gate: GateFolder, number: int, answer: Approval) -> bool:
    """Whether it could be written: until then the run waits, and can be ended."""
    with suppress(OSError):
        try:
            gate.answer(number, answer)
        except (TypeError, ValueError):  # arguments that are no JSON
            gate.answer(number, Approval.deny("the program that was asked gave no JSON"))
        return True
    return False
