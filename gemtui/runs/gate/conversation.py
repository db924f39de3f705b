"""A run's questions to the user, the effects of their calls, and the answers.

The app, the command line and the library all ask and answer through this module, so they only have
to display questions and read answers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from gemtui.agent.approval import Approval, ApprovalRequest
from gemtui.agent.gate_folder import GateFolder
from gemtui.agent.trust import folder_settings
from gemtui.calls.effect import Effect
from gemtui.errors import GemtuiError
from gemtui.jsonfile import read_object
from gemtui.paths import gemini_home
from gemtui.runs.gate.cautions import Caution, cautions
from gemtui.runs.gate.granted import keep_always
from gemtui.runs.gate.proposal import Proposal, proposal_of
from gemtui.runs.gate.questions import Question, Questions
from gemtui.runs.gate.similar_calls import SimilarCalls, similar_calls

_SERVER = "mcp_"


class Counted(StrEnum):
    """Whether an answer took effect, and how."""

    FIRST = "first"
    SECOND = "second"
    """The question had already been answered elsewhere, so this answer had no effect."""
    NOT_KEPT = "not_kept"
    """The answer took effect, but could not be saved for later runs."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question together with the effect of its call.

    `proposal`: the call and what it would do. `similar`: the calls that “allow similar” would
    allow. `changed`: the call with the user's changes; None if there are none.
    """

    question: Question
    proposal: Proposal
    similar: SimilarCalls
    changed: Proposal | None = None

    @property
    def runs(self) -> Proposal:
        """The call that will be made if the user approves."""
        return self.changed or self.proposal

    @property
    def refusal(self) -> str | None:
        """Why the call can't be approved, as a clause; None if it can."""
        wanted = None if self.changed is None else self.changed.arguments.get("content")
        return self.runs.refusal(wanted if isinstance(wanted, str) else None)

    @property
    def effect(self) -> Effect:
        """The effect that the call will have if the user approves it."""
        return self.runs.effect

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Facts about the call the user should know before answering."""
        return cautions(self.question.request, self.runs)

    @property
    def has_similar(self) -> bool:
        """Whether the user can allow all similar calls with one answer."""
        return self.similar.rule is not None and self.changed is None


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of the user's answer to a question.

    `problem`: why the answer could not be saved; "" if it was saved or need not be.
    """

    counted: Counted
    problem: str = ""

    def __bool__(self) -> bool:
        """Return whether the answer took effect."""
        return self.counted is not Counted.SECOND


class Conversation:
    """The questions of one run, and methods to answer them.

    The methods read and write files.

    `cwd`: the run's folder.
    """

    def __init__(self, gate: GateFolder, cwd: Path, environ: Mapping[str, str] = os.environ) -> None:
        self._gate, self.cwd, self._environ = gate, cwd, environ
        self.questions = Questions(gate)

    def refresh(self) -> tuple[Question, ...]:
        """Return all questions that the run has asked so far, in order."""
        return self.questions.refresh()

    def asked(self, question: Question, arguments: Mapping[str, Any] | None = None) -> Asked:
        """Return a question together with what its call would do now.

        `arguments`: the user's arguments for the call; None means that they are unchanged.
        """
        request, changed = question.request, None
        if arguments is not None and arguments != request.arguments:
            changed = proposal_of(request, self.cwd, arguments)
        similar = similar_to(request, self.cwd, self._environ)
        return Asked(question, proposal_of(request, self.cwd), similar, changed)

    def change(self, asked: Asked, text: str) -> Asked:
        """Return the question with its call changed to use the user's text.

        `text`: replaces the command, the file contents or the arguments that the question shows.
        Raises ValueError, with a message for the user, if the call can't write or run exactly this
        text.
        """
        found = self.asked(asked.question, asked.runs.changed(text))
        if found.changed is not None and (why := found.changed.refusal(text)) is not None:
            raise ValueError(why)
        return found

    def still_true(self, asked: Asked) -> Asked | None:
        """Check whether the call would still do what the displayed question says.

        Returns None if it would, and otherwise the question with the call's current effect.
        `asked`: the question as it is displayed.
        """
        changed = None if asked.changed is None else asked.changed.arguments
        now = self.asked(asked.question, changed)
        return None if now == asked else now

    # --- answers; each raises OSError if it can't be written -----------------------------------

    def allow(self, asked: Asked) -> AnswerOutcome:
        """Approve the call as it is displayed.

        Raises ValueError if it can't be approved.
        """
        if (why := asked.refusal) is not None:
            raise ValueError(why)
        arguments = None if asked.changed is None else asked.changed.arguments
        return self._give(asked, Approval.allow(arguments, shown=asked.effect.mark))

    def allow_similar(self, asked: Asked) -> AnswerOutcome:
        """Approve the call, and all similar calls in this run.

        Raises ValueError if no calls count as similar or this one can't be approved.
        """
        return self._give(asked, self._all_like(asked))

    def always(self, asked: Asked) -> AnswerOutcome:
        """Approve the call, and all similar calls in all runs.

        If the rule for later runs can't be saved, the outcome says so. Raises ValueError if no
        calls count as similar or this one can't be approved.
        """
        given = self._give(asked, replace(self._all_like(asked), always=True))
        if given and asked.similar.rule is not None:
            try:
                keep_always(asked.similar.rule)
            except (GemtuiError, OSError) as error:
                return AnswerOutcome(Counted.NOT_KEPT, str(error))
        return given

    def deny(self, asked: Asked, reason: str = "") -> AnswerOutcome:
        """Deny the call, and send the reason to the model."""
        return self._give(asked, Approval.deny(reason))

    def stop(self, asked: Asked, reason: str = "") -> AnswerOutcome:
        """Deny the call, and end the run for this reason."""
        return self._give(asked, Approval.stop(reason))

    def revoke(self) -> Question | None:
        """Revoke the newest “allow similar” answer, for this run and later ones.

        Returns the question that was answered; None if there is no such answer. Raises PolicyError
        and OSError.
        """
        return self.questions.revoke_newest()

    def _all_like(self, asked: Asked) -> Approval:
        if not asked.has_similar:
            raise ValueError(asked.similar.words)
        if (why := asked.refusal) is not None:
            raise ValueError(why)
        return Approval.allow(rules=asked.similar.toml, shown=asked.effect.mark)

    def _give(self, asked: Asked, approval: Approval) -> AnswerOutcome:
        first = self._gate.answer(asked.question.number, approval)
        return AnswerOutcome(Counted.FIRST if first else Counted.SECOND)


def similar_to(request: ApprovalRequest, cwd: Path, environ: Mapping[str, str] = os.environ) -> SimilarCalls:
    """Return the calls that answering “allow similar” to this request would allow.

    If more than one MCP server may provide the tool, no calls count as similar.
    """
    name = request.tool_name
    servers = servers_of(name, environ, cwd) if name.startswith(_SERVER) else ()
    if len(servers) > 1:
        words = f"the name is ambiguous: it could belong to any of the servers {' and '.join(servers)}"
        return SimilarCalls(words=words)
    return similar_calls(request, cwd)


def servers_of(tool: str, environ: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
    """Return the configured MCP servers that may provide a tool with this full name.

    Names of servers and tools are joined by `_`. So if there are servers `a` and `a_b`, the tool
    `mcp_a_b_c` can belong to either of them (assets/gemini-cli.md#tool-names).
    """
    return tuple(each for each in sorted(_servers(environ, cwd)) if _may_have(each, tool))


def _may_have(server: str, tool: str) -> bool:
    joined = server if server.startswith(_SERVER) else f"{_SERVER}{server}"
    return tool.startswith((f"{joined}_", f"{_SERVER}{server}_"))


def _servers(environ: Mapping[str, str], cwd: Path) -> set[str]:
    """Return the names of the MCP servers in all settings and extensions."""
    settings = folder_settings(cwd, environ, for_run=True)
    tables = [value for _, value in settings.each("mcpServers")]
    manifests = _manifests(gemini_home(environ) / "extensions")
    tables += [each.get("mcpServers") for each in manifests]
    return {str(name) for table in tables if isinstance(table, dict) for name in table}


def _manifests(folder: Path) -> Iterator[dict[str, Any]]:
    for place in folder.glob("*/gemini-extension.json"):
        with suppress(OSError):
            yield read_object(place)
