"""Answer a run's questions with a callback."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.options import Approve
from gemtui.agent.tail import STEP

_HERE = 50
"""How often to poll for questions between two updates of the presence file."""
_AGAIN = 0.5
"""Seconds to wait before trying again to write an answer."""


async def answer_questions(gate: GateFolder, approve: Approve) -> None:
    """Pass each of a run's questions to `approve` as it is asked, until cancelled."""
    async with asyncio.TaskGroup() as answering:
        number, looks = 1, 0
        while True:
            if looks % _HERE == 0:
                with suppress(OSError):
                    await asyncio.to_thread(gate.here)
            looks += 1
            while gate.has_question(number):
                request = await asyncio.to_thread(gate.question, number)
                if request is not None:
                    answering.create_task(_answer(gate, request, approve))
                number += 1
            await asyncio.sleep(STEP)


async def _answer(gate: GateFolder, request: ApprovalRequest, approve: Approve) -> None:
    try:
        answer = await approve(request)
        if not isinstance(answer, Approval):
            answer = Approval.deny(
                f"the approval callback returned {type(answer).__name__} instead of an Approval"
            )
    except Exception as error:
        answer = Approval.deny(f"the approval callback raised {type(error).__name__}")
    while not await asyncio.to_thread(_write, gate, request.number, answer):
        await asyncio.sleep(_AGAIN)


def _write(gate: GateFolder, number: int, answer: Approval) -> bool:
    """Write the answer; return False if that failed and the run is still waiting."""
    with suppress(OSError):
        try:
            gate.answer(number, answer)
        except (TypeError, ValueError):  # arguments that can't be serialised as JSON
            gate.answer(
                number,
                Approval.deny(
                    "the approval callback returned arguments that can't be written as JSON"
                ),
            )
        return True
    return False
