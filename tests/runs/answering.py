"""A person who answers what a run asks, in a process that can be killed.

`python -m tests.runs.answering RUN JOURNAL SEED`: each answer is chosen by the call, written to the
journal, and only then given, after a while. Who comes after a killed one reads the journal and
answers alike.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

from gemtui.agent.approval import Approval, ApprovalRequest, GateFolder
from gemtui.agent.run_folder import RunFolder

LONGEST = 0.15
"""Seconds that a person thinks at most."""


def content(arguments: object) -> tuple[str, str]:
    """The name and the content of the file that a call of the storm writes."""
    assert isinstance(arguments, dict)
    if "command" in arguments:
        _, words, _, name = str(arguments["command"]).split(" ")
        return name, f"{words}\n"
    return str(arguments.get("file_path", arguments.get("path"))), str(arguments["content"])


def answered(request: ApprovalRequest, chance: random.Random) -> tuple[Approval, str | None]:
    """An answer, and the content with which the file may be there; None = it may not."""
    name, asked = content(request.requested)
    verdict = chance.choices(("yes", "changed", "no"), (4, 3, 3))[0]
    if verdict == "no":
        return Approval.deny("not this one"), None
    if verdict == "yes":
        return Approval.allow(), asked
    other = f"person:{name}\n"
    if "command" in request.arguments:
        return Approval.allow({"command": f"echo {other.strip()} > {name}"}), other
    return Approval.allow({**request.arguments, "content": other}), other


def main(run: str, journal: str, seed: str) -> None:
    """Answer until the process is ended."""
    gate = GateFolder.of(RunFolder(Path(run)))
    chance = random.Random(seed)
    book = Path(journal)
    with book.open("a") as stream:
        while True:
            for number in gate.waiting():
                request = gate.question(number)
                if request is None:
                    continue
                answer, may = answered(request, random.Random(f"{seed} {number}"))
                name, _ = content(request.requested)
                entry = {"number": number, "name": name, "may": may}
                entry["verdict"] = "changed" if answer.arguments else answer.consent.value
                stream.write(json.dumps(entry) + "\n")
                stream.flush()
                time.sleep(chance.random() ** 2 * LONGEST)
                gate.answer(number, answer)
            time.sleep(0.005)


if __name__ == "__main__":
    main(*sys.argv[1:])
