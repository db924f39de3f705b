"""Apply safety checkers, which examine the calls that rules don't deny.

See assets/gemini-cli.md#safety-checkers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gemtui.calls.paths import absolute, real_path
from gemtui.calls.shell.parser import parse_command
from gemtui.policy.engine.refusals import blocked_segment, is_outside, path_names
from gemtui.policy.engine.setup import Evaluation
from gemtui.policy.match.matching import SHELL, CompiledRule, arguments_text, compile_rules
from gemtui.policy.model.rules import Decision, SafetyChecker

_VSCODE = re.compile(r"\.vscode|(?:vscode|vs[0-9a-f]{4})~\d+")
_PATH_WORDS = ("path", "directory", "file")
_PATH_KEYS = ("source", "destination")


class CompiledChecker(NamedTuple):
    """A checker, and one compiled rule that selects the calls to be checked."""

    checker: SafetyChecker
    condition: CompiledRule


def compile_checkers(checkers: Iterable[SafetyChecker]) -> tuple[CompiledChecker, ...]:
    """Return the checkers in the order in which the CLI uses them."""
    every = [
        CompiledChecker(checker, one)
        for checker in checkers
        for one in compile_rules([checker.rule])
    ]
    return tuple(sorted(every, key=lambda checker: -checker.condition.key))


def checked(
    evaluation: Evaluation,
    tool: str,
    args: Mapping[str, Any],
    checkers: Sequence[CompiledChecker],
    roots: Sequence[Path],
    *,
    own: str,
) -> Evaluation:
    """Return the decision after all matching safety checkers have examined the call.

    A checker can turn an allow into an ask or a denial. After a denial, no more checkers run.
    `checkers`: those that apply to this tool. `roots`: the folders that tools may use, the
    workspace first; () means unknown. `own`: the argument whose path the tool itself refuses
    outside of these folders; "" if it refuses none.
    """
    for checker, condition in checkers:
        if evaluation.decision is Decision.DENY:
            break
        if any(condition.matches(text) for text in _texts(tool, args, condition)):
            decision, why = _answer(checker, args, roots, own)
            if decision is not Decision.ALLOW:
                evaluation = replace(
                    evaluation,
                    decision=decision,
                    matched=evaluation.matched or evaluation.ready,
                    note=f"the safety checker {checker.name} {why}",
                )
    return evaluation


def _texts(tool: str, args: Mapping[str, Any], condition: CompiledRule) -> Iterator[str]:
    """Yield the strings in which a checker's pattern is searched for.

    The first is the call's serialised arguments. For a shell command, the arguments follow again
    for each part of the command, with only that part as the command. `condition`: the compiled rule
    that selects the checker's calls.
    """
    yield arguments_text(args) if condition.pattern else ""
    command = args.get("command")
    if condition.pattern and tool == SHELL and isinstance(command, str):
        for part in parse_command(command).parts:
            yield arguments_text({**args, "command": part.text})


def _answer(
    checker: SafetyChecker, args: Mapping[str, Any], roots: Sequence[Path], own: str
) -> tuple[Decision, str]:
    """Return a checker's decision, and a clause that explains it.

    The checker `conseca` always allows, because it works only if a setting enables it. A path
    outside the workspace is not reported if the tool itself refuses that path before the checker
    runs.
    """
    if checker.external:
        return Decision.DENY, "does not exist, so all calls that it should check are denied"
    if checker.name == "conseca":
        return Decision.ALLOW, ""
    if checker.context is not None and "environment" not in checker.context:
        return Decision.DENY, 'fails without "environment" in its required_context'
    for path in _paths(args, checker.config):
        decision, why = _path_answer(path, [str(root) for root in roots])
        if decision is Decision.DENY and path == args.get(own) and is_outside(path, roots):
            continue
        if decision is not Decision.ALLOW:
            return decision, why
    return Decision.ALLOW, ""


def _path_answer(path: str, roots: Sequence[str]) -> tuple[Decision, str]:
    inside = list(_inside(path, roots))
    if any(map(blocked_segment, inside)):
        return (
            Decision.DENY,
            "denies paths that contain .git, .env, node_modules or gha-creds-*.json",
        )
    if any(map(_VSCODE.fullmatch, (name for spelling in inside for name in path_names(spelling)))):
        return Decision.ASK_USER, "always asks about files in .vscode"
    if not inside:
        return Decision.DENY, "denies paths outside of the workspace"
    return Decision.ALLOW, ""


def _inside(path: str, roots: Sequence[str]) -> Iterator[str]:
    """Yield `path` relative to each of the folders in `roots` that contains it.

    If `roots` is empty, because the folders are unknown, a relative path is yielded as it is, and
    an absolute one reduced to its components named `.vscode`, about which the checker asks
    anywhere.
    """
    if not roots:
        plain = os.path.normpath(path)
        if not plain.startswith(".."):
            yield plain if not plain.startswith("/") else "/".join(_vscode_names(plain))
        return
    target = real_path(absolute(roots[0], path))
    for root in roots:
        relative = os.path.relpath(target, real_path(root))
        if not relative.startswith(".."):
            yield relative


def _vscode_names(path: str) -> Iterator[str]:
    """Yield the names in a path about which the checker asks the user (`.vscode`)."""
    return (name for name in path_names(path) if _VSCODE.fullmatch(name))


def _paths(value: Any, config: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the arguments that the CLI treats as paths because of their names.

    `config`: the checker's settings, which can include or exclude arguments by name. `above`: what
    precedes the names of nested arguments, such as `options.`.
    """
    included, excluded = config.get("included_args", ()), config.get("excluded_args", ())
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in items:
        name = f"{above}{key}"
        if name in excluded:
            continue
        if isinstance(item, str):
            path_like = any(word in str(key) for word in _PATH_WORDS) or key in _PATH_KEYS
            if name in included or path_like:
                yield item
        elif isinstance(item, Mapping | list):
            yield from _paths(item, config, f"{name}.")
