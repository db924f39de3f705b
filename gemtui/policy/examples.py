"""Read and try a policy's examples: comments with calls and expected decisions.

    # example: allow run_shell_command {"command": "npm test"}
    # example: deny run_shell_command {"command": "git push"} in yolo
    # example: ask Bash {"command": "git push"} for claude

Gemini CLI treats these lines as comments. gemtui decides an example as in a headless run, by the
rules of its file and the built-in ones, in mode default unless the example names another mode. The
call is one of Gemini CLI unless the example names another agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gemtui.agents import Agent
from gemtui.errors import OptionError
from gemtui.jsonin import loads
from gemtui.policy.engine.decide import Engine
from gemtui.policy.file.levels import rule_mode
from gemtui.policy.file.policy import Policy
from gemtui.policy.model.foreign import spelled
from gemtui.policy.model.rules import ApprovalMode, Decision, Rule
from gemtui.text import or_list

_LINE = re.compile(r"#\s*example:(.*)", re.IGNORECASE)
_FORM = re.compile(r"\s*(\w+)\s+(\S+)\s*(\{.*\})?\s*(?:\bin\s+(\w+))?\s*(?:\bfor\s+(\w+))?\s*")
_DECISIONS = {"allow": Decision.ALLOW, "ask": Decision.ASK_USER, "deny": Decision.DENY}
_WORDS = {decision: word for word, decision in _DECISIONS.items()}
FORM = '# example: allow run_shell_command {"command": "npm test"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A call with the expected decision.

    `line`: the example's 1-based line in the file; 0 if it isn't in the file yet. `problem`: why
    the example can't be read; "" if it can be read.
    """

    expected: Decision = Decision.DENY
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    mode: ApprovalMode = ApprovalMode.DEFAULT
    agent: Agent = Agent.GEMINI
    line: int = 0
    problem: str = ""

    @property
    def text(self) -> str:
        """The example as a line of the file."""
        args = f" {json.dumps(dict(self.args), ensure_ascii=False)}" if self.args else ""
        mode = "" if self.mode is ApprovalMode.DEFAULT else f" in {self.mode.value}"
        agent = "" if self.agent is Agent.GEMINI else f" for {self.agent.value}"
        return f"# example: {_WORDS[self.expected]} {self.tool}{args}{mode}{agent}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An example, and the decision that the policy makes for its call.

    `decision`: None if the example can't be read. `rule`: the rule that decides; None if no rule
    does.
    """

    example: Example
    decision: Decision | None = None
    rule: Rule | None = None

    @property
    def passes(self) -> bool:
        """Whether the decision is the expected one."""
        return self.decision is self.example.expected


def examples_of(text: str) -> tuple[Example, ...]:
    """Return the examples in a policy file's contents, including unreadable ones."""
    return tuple(_examples(text))


def _examples(text: str) -> Iterator[Example]:
    for number, line in enumerate(text.split("\n"), 1):
        match = _LINE.match(line.strip())
        if match:
            yield _example(match[1], number)


def _example(text: str, line: int) -> Example:
    match = _FORM.fullmatch(text)
    if match is None or match[1] not in _DECISIONS:
        return Example(line=line, problem=f"the example can't be read: write it as {FORM}")
    try:
        args = loads(match[3].encode()) if match[3] else {}
        mode = rule_mode(match[4]) if match[4] else ApprovalMode.DEFAULT
    except orjson.JSONDecodeError as error:
        return Example(line=line, problem=f"its arguments are not valid JSON ({error.msg})")
    except OptionError as error:
        return Example(line=line, problem=str(error))
    if match[5] and match[5] not in list(Agent):
        names = or_list([agent.value for agent in Agent])
        return Example(line=line, problem=f"gemtui knows no agent {match[5]}: write {names}")
    return Example(
        expected=_DECISIONS[match[1]],
        tool=match[2],
        args=args,
        mode=mode,
        agent=Agent(match[5] or Agent.GEMINI),
        line=line,
    )


def with_example(text: str, example: Example) -> str:
    """Return a policy file's contents with an example added below the existing ones.

    The contents are returned unchanged if they already contain the example.
    """
    lines = text.split("\n")
    had = [at for at, line in enumerate(lines) if _LINE.match(line.strip())]
    if any(lines[at].strip() == example.text for at in had):
        return text
    if had:
        return "\n".join((*lines[: had[-1] + 1], example.text, *lines[had[-1] + 1 :]))
    return f"{example.text}\n\n{text}" if text.strip() else f"{example.text}\n"


def try_examples(examples: Sequence[Example], policy: Policy) -> tuple[Tried, ...]:
    """Decide each example's call under the policy, in the same order."""
    engines: dict[ApprovalMode, Engine] = {}
    tried = []
    for example in examples:
        if example.problem:
            tried.append(Tried(example=example))
            continue
        engine = engines.setdefault(example.mode, Engine(policy, mode=example.mode))
        outcome = engine.outcome(spelled(example.agent, example.tool, example.args))
        tried.append(Tried(example=example, decision=outcome.decision, rule=outcome.rule))
    return tuple(tried)
