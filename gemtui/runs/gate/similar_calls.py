"""Derive the narrow rule with which “allow similar” allows calls like a given one.

The rule is described to the user before approval, and never allows more than the description says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gemtui.agent.approval import ApprovalRequest
from gemtui.calls.paths import is_verbatim
from gemtui.calls.shell.dangers import dangers
from gemtui.calls.shell.parser import parse_command, unwrapped
from gemtui.calls.shell.similar import what_is_covered, why_not_covered
from gemtui.calls.shell.unasked import command_place as command_place
from gemtui.calls.shell.words import Unclear, plain_commands
from gemtui.files import resolved
from gemtui.policy.file.rule_codec import rules_to_toml
from gemtui.policy.match.path_patterns import LENGTH, files_pattern, locate_in_project
from gemtui.policy.model.rules import Decision, Rule
from gemtui.policy.model.tool_catalog import tool as known_tool
from gemtui.policy.suggest.prefixes import NoPrefix, Prefix, prefix_of
from gemtui.policy.suggest.replay import tool_may_exist
from gemtui.policy.suggest.suggest import EDITS

SHELL = "run_shell_command"
PRIORITY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCalls:
    """The calls that “allow similar” would allow.

    `rule`: allows these calls; None if there is no narrow rule. `words`: a description of the
    calls, or the reason why there is no rule, without a full stop.
    """

    words: str
    rule: Rule | None = None

    @property
    def toml(self) -> str:
        """The rule in the format of a policy file; "" if there is none."""
        return "" if self.rule is None else rules_to_toml([self.rule])


def similar_calls(request: ApprovalRequest, cwd: Path) -> SimilarCalls:
    """Return which calls are similar to the requested one.

    `cwd`: the run's folder.
    """
    if request.tool_name == SHELL:
        folder = None if request.effect is None else request.effect.folder
        return _command(str(request.arguments.get("command", "")), cwd, folder)
    if request.tool_name in EDITS:
        return _file(str(request.arguments.get("file_path", "")), cwd)
    return _tool(request)


def _command(command: str, cwd: Path, folder: str | None) -> SimilarCalls:
    """Return which commands are similar: those that start with the same prefixes.

    `folder`: the folder the command runs in; None means the run's folder.
    """
    if found := dangers(command, cwd, folder):
        return SimilarCalls(words=found[0].why)
    reading = parse_command(command)
    if not reading.parsed or not reading.parts:
        return SimilarCalls(words="it can't be parsed")
    if reading.redirected:
        return SimilarCalls(words="it redirects input or output")
    prefixes: dict[str, str] = {}
    for part in reading.parts:
        found_prefix = prefix_of(part.text)
        if isinstance(found_prefix, NoPrefix):
            return SimilarCalls(words=f"{found_prefix.what}: {found_prefix.why}")
        prefixes[found_prefix.text] = _opens(part.text, found_prefix)
    if (why := _why_not_itself(command, cwd, folder)) is not None:
        return SimilarCalls(words=why)
    texts = tuple(prefixes)
    rule = _allow((SHELL,), command_prefixes=texts, prefix_list=len(texts) > 1)
    opens = "; ".join(dict.fromkeys(prefixes.values()))
    return SimilarCalls(words=f"commands that start with {' or '.join(texts)}, {opens}", rule=rule)


def _why_not_itself(command: str, cwd: Path, folder: str | None) -> str | None:
    """Return why the rule would not even cover the command itself; None if it would.

    `Granted` applies such rules, and is stricter than a policy.
    """
    place = command_place(cwd, folder or "")
    if isinstance(place, str):
        return place
    try:
        commands = plain_commands(unwrapped(command))
    except Unclear as unclear:
        return str(unclear)
    reasons = (why_not_covered(words, commands, place) for words in commands)
    return next(filter(None, reasons), None)


def _opens(text: str, prefix: Prefix) -> str:
    """Describe what a prefix allows if `Granted` applies it.

    That is less than the same prefix allows in a policy. `text`: a command with the prefix.
    """
    try:
        return what_is_covered(plain_commands(text)[0]) or prefix.opens
    except Unclear:
        return prefix.opens


def _file(path: str, cwd: Path) -> SimilarCalls:
    """Return which writes are similar: all those to the same file, also through links."""
    if not is_verbatim(path):
        return SimilarCalls(words="Gemini CLI would read its path as a different file")
    place = locate_in_project(path, cwd)
    if isinstance(place, str):
        return SimilarCalls(words=place)
    real = resolved(cwd / path)
    if not real.is_relative_to(resolved(cwd)):
        return SimilarCalls(words="a symbolic link in its path leads outside of the project")
    pattern = files_pattern([str(real)], [])
    if len(pattern) > LENGTH:
        return SimilarCalls(words="its path is too long for a pattern")
    words = f"writes and edits of the file {place.path}, whatever they change"
    return SimilarCalls(words=words, rule=_allow(EDITS, args_pattern=pattern))


_OPENS = {"web_fetch": "any URL, with any data that the model sends", "google_web_search": "any search"}


def _tool(request: ApprovalRequest) -> SimilarCalls:
    """Return which calls are similar: all calls to the same tool."""
    known = known_tool(request.tool_name)
    name = known.name if known else request.tool_name
    if not tool_may_exist(name):
        return SimilarCalls(words="the current Gemini CLI has no such tool")
    if name in ("enter_plan_mode", "exit_plan_mode"):
        return SimilarCalls(words="it changes the approval mode")
    opens = _OPENS.get(name, "with any arguments")
    return SimilarCalls(words=f"all calls of {name}: {opens}", rule=_allow((name,)))


def _allow(tools: tuple[str, ...], **fields: object) -> Rule:
    return Rule(
        decision=Decision.ALLOW,
        priority=PRIORITY,
        tools=tools,
        tool_list=len(tools) > 1,
        source="answer",
        **fields,  # type: ignore[arg-type]
    )
