"""Commands that the CLI judges by itself, whatever the rules say: known safe, and dangerous.

Only a rule without conditions on arguments, or no rule at all, leaves room for this judgement
(policy-engine, "Shell: what happens outside the rules").
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class Judgement(StrEnum):
    """What the engine thinks of a command by itself.

    SAFE turns an ask into an allow. DANGEROUS and OUTSIDE (it runs outside the workspace) turn
    everything but a deny into an ask, except under yolo. PLAIN changes nothing.
    """

    SAFE = "safe"
    DANGEROUS = "dangerous"
    OUTSIDE = "outside"
    PLAIN = "plain"


def judge(command: str, *, workspace: Path | None = None, dir_path: str | None = None) -> Judgement:
    """The engine's own judgement of a whole command.

    `workspace`: the run's folder; paths are looked up there for symbolic links, as the CLI does.
    None = no folder is known: paths are judged by their words alone, absolute ones as outside.
    `dir_path`: the call's argument of that name.
    """
    raise NotImplementedError
