"""Find rules that Gemini CLI saved itself, but that never matched a recorded call.

If the user allows a call for all future sessions, Gemini CLI saves a rule in `auto-saved.toml`.
Some versions leave out the folder of a program, so that a rule for `gradlew` doesn't match
`./gradlew test`, and a rule for a file only matches the path as that call spelled it
(assets/gemini-cli.md#saved-rules).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from gemtui.calls.paths import recorded_path
from gemtui.calls.shell.parser import parse_command
from gemtui.policy.file.rule_codec import value_to_toml
from gemtui.policy.match.matching import (
    SHELL,
    CompiledRule,
    Subject,
    arguments_text,
    compile_rules,
    is_about,
)
from gemtui.policy.match.path_patterns import files_pattern
from gemtui.policy.match.patterns import PatternTimeout
from gemtui.policy.model.rules import Finding, RecordedCall, Rule, findings, warned
from gemtui.text import counted, one_line

AUTO_SAVED = "auto-saved.toml"
"""The name of the file in which Gemini CLI saves rules."""
_FILE = re.compile(r'"file_path":"((?:\\.|[^"\\])*)"')
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_EXAMPLE = 80


class SavedRule(NamedTuple):
    """What is known of a saved rule that matched no call.

    `better`: the rule that matches calls like those for which it was probably saved; None if there
    are none, and then `calls` is 0. `example`: such a call's command or path.
    """

    rule: Rule
    better: Rule | None = None
    calls: int = 0
    example: str = ""


class SavedRules:
    """Compares saved rules with recorded calls."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._unmatched = [SavedRule(rule) for rule in rules]

    def feed(self, calls: Sequence[RecordedCall]) -> None:
        """Take more calls into account.

        A rule whose pattern takes too long is left out, because nobody knows what it matches.
        """
        for recorded in calls:
            if not self._unmatched:
                return
            texts = tuple(_texts(recorded))
            left = []
            for saved in self._unmatched:
                with suppress(PatternTimeout):
                    if not _matches(saved.rule, recorded, texts):
                        left.append(_with_call(saved, recorded, texts))
            self._unmatched = left

    def unmatched(self) -> tuple[SavedRule, ...]:
        """Return the rules that matched no call so far."""
        return tuple(self._unmatched)


def saved_findings(unmatched: Iterable[SavedRule], sessions: int) -> Iterator[Finding]:
    """Yield a warning for each rule. `sessions`: how many sessions were searched."""
    for rule, better, calls, example in unmatched:
        field, message, way_out = "", f"matches no call in {counted(sessions, 'session')}", ""
        if better is not None:
            field = "commandPrefix" if better.command_prefixes else "argsPattern"
            pattern = better.command_prefixes[0] if better.command_prefixes else better.args_pattern
            message += f"; {counted(calls, 'similar call')} such as: {example}"
            way_out = f"write {value_to_toml(pattern)}"
        yield from findings([warned(field, message, way_out)], rule.source, rule.index)


def _texts(recorded: RecordedCall) -> Iterator[str]:
    """Yield the call's arguments as rules see them: of a command, also each of its parts."""
    args = recorded.call.args
    yield arguments_text(args)
    command = args.get("command")
    if recorded.call.tool == SHELL and isinstance(command, str):
        for part in parse_command(command).parts:
            yield arguments_text({"command": part.text})


def _matches(rule: Rule, recorded: RecordedCall, texts: Sequence[str]) -> bool:
    return any(
        _is_about(ready, recorded) and any(map(ready.matches, texts))
        for ready in compile_rules([rule])
    )


def _is_about(ready: CompiledRule, recorded: RecordedCall) -> bool:
    tool, server = recorded.call.tool, ready.rule.mcp_name
    named = server if server and tool.startswith(f"mcp_{server}_") else None
    return is_about(ready, Subject(names=(tool,), server=named))


def _with_call(saved: SavedRule, recorded: RecordedCall, texts: Sequence[str]) -> SavedRule:
    """Return what is known of a rule after a call that it doesn't match."""
    if recorded.call.tool not in saved.rule.tools or recorded.is_powershell:
        return saved
    if saved.better is not None and _matches(saved.better, recorded, texts):
        return saved._replace(calls=saved.calls + 1)
    for better in _alternatives(saved.rule, recorded):
        if saved.better is None and _matches(better, recorded, texts):
            args = recorded.call.args
            example = one_line(str(args.get("command") or args.get("file_path")))[:_EXAMPLE]
            return saved._replace(better=better, calls=1, example=example)
    return saved


def _alternatives(rule: Rule, recorded: RecordedCall) -> Iterator[Rule]:
    """Yield rules for the call that differ from a saved one only in how a path is spelled."""
    args = recorded.call.args
    command, file = args.get("command"), args.get("file_path")
    if isinstance(command, str):
        for part in parse_command(command).parts:
            for prefix in filter(str.strip, rule.command_prefixes):
                spelled = _spelled(prefix.split(), part.text.split())
                if spelled:
                    yield replace(rule, command_prefixes=(spelled,), prefix_list=False)
    named = _FILE.search(rule.args_pattern or "")
    if isinstance(file, str) and named is not None and recorded.project is not None:
        project = str(recorded.project)
        path = recorded_path(re.sub(r"\\(.)", r"\1", named[1]), project)
        if path == recorded_path(file, project) and path.is_relative_to(project):
            relative = PurePosixPath(path.relative_to(project)).as_posix()
            pattern = files_pattern([relative], [f"{project.rstrip('/')}/"])
            yield replace(rule, args_pattern=pattern)


def _spelled(prefix: Sequence[str], words: Sequence[str]) -> str:
    """Return the beginning of a command that a prefix was meant to cover; "" if it wasn't.

    It may name the program with its folder, if the prefix has none, and set variables before it,
    as in `CI=1 ./gradlew`. After any other word, the program would be an argument.
    """
    for at, word in enumerate(words):
        program = word if "/" in prefix[0] else PurePosixPath(word).name
        end = at + len(prefix)
        if [program, *words[at + 1 : end]] == list(prefix):
            return " ".join(words[:end])
        if _ASSIGNMENT.fullmatch(word) is None:
            break
    return ""
