"""Describe rules and decisions, in the same words on screens and in the shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from gemtui.agents import WORDS, Agent
from gemtui.policy.match.command_patterns import allowed_command, mentioned_words
from gemtui.policy.match.path_patterns import describe_files, projects_of
from gemtui.policy.model.rules import GEMTUI, Decision, Rule, Tier
from gemtui.text import Clean, short_path, visible_line

LONG = 400
"""How many characters of an untrusted string are shown in one line."""
_NAMED = 3
"""How many of a rule's tool names are shown; the others are only counted."""
_PREFIXES = 4
"""How many of a rule's command prefixes are shown in a reason."""
_DECISIONS = {Decision.ALLOW: "allow", Decision.ASK_USER: "ask", Decision.DENY: "deny"}


def decision_word(decision: Decision) -> Clean:
    """Return a decision as one word: allow, ask or deny."""
    return Clean(_DECISIONS[decision])


def tools_words(rule: Rule, most: int | None = LONG) -> Clean:
    """Return the tools a rule is for, such as "any tool of github".

    `most`: how many characters of each untrusted string to use; None means all.
    """
    names = visible_line(", ".join(rule.tools[:_NAMED])[:most]) or "any tool"
    if "*" in rule.tools:
        names = Clean("any tool")
    elif len(rule.tools) > _NAMED:
        names = Clean(f"{names} and {len(rule.tools) - _NAMED:,} more")
    server = f" of {visible_line(rule.mcp_name[:most])}" if rule.mcp_name else ""
    return Clean(f"{names}{server}")


def condition_words(rule: Rule, most: int | None = LONG) -> Clean:
    """Return a rule's conditions, except for its tools; "" if there are none.

    `most`: as for `tools_words`.
    """
    return Clean(", ".join(_conditions(rule, most)))


def _conditions(rule: Rule, most: int | None) -> Iterator[str]:
    if rule.command_prefixes:
        prefixes = (f'"{visible_line(prefix[:most])}"' for prefix in rule.command_prefixes[:most])
        yield f"prefix {' or '.join(prefixes)}"
    if rule.command_regex is not None:
        command = allowed_command(rule.command_regex)
        words = f'command "{command}"' if command else f"command matches {rule.command_regex}"
        yield visible_line(words[:most])
    if rule.args_pattern is not None:
        yield visible_line(_arguments(rule.args_pattern)[:most])
    if rule.annotations:
        named = (f"{key}={value}" for key, value in rule.annotations.items())
        yield f"marked {visible_line(' '.join(named)[:most])}"
    if rule.subagent is not None:
        yield f"subagent {visible_line(rule.subagent[:most])}"
    if rule.modes:
        yield f"mode {visible_line(' or '.join(rule.modes)[:most])}"
    if rule.interactive is not None:
        yield "interactive only" if rule.interactive else "headless only"
    if rule.allow_redirection:
        yield "allows redirection"


def _arguments(pattern: str) -> str:
    command = mentioned_words(pattern)
    if command:
        return f'contains the words "{command}"'
    files = describe_files(pattern)
    if files is None:
        return f"arguments match {pattern}"
    projects = [str(short_path(Path(project))) for project in projects_of(pattern)]
    return f"{files} in {' or '.join(projects)}" if projects else files


def rule_words(rule: Rule) -> Clean:
    """Describe a rule's tools and then its conditions, without cutting long strings."""
    return Clean(", ".join(filter(None, (tools_words(rule, None), condition_words(rule, None)))))


def condition_result(rule: Rule, matches: bool) -> str:
    """Return a clause that says whether the arguments met a rule's condition.

    `matches`: whether they did.
    """
    if rule.prefix_list or any(rule.command_prefixes):
        shown = [f"`{prefix}`" for prefix in rule.command_prefixes[:_PREFIXES]]
        if len(rule.command_prefixes) > _PREFIXES:
            shown.append(f"one of {len(rule.command_prefixes) - _PREFIXES} more")
        does = "starts" if matches else "does not start"
        return f"the command {does} with {' or '.join(shown)}"
    if rule.command_regex:
        return f"the command {'matches' if matches else 'does not match'} {rule.command_regex}"
    return f"the arguments {'match' if matches else 'do not match'} {rule.args_pattern}"


def rule_source(rule: Rule) -> Clean:
    """Return where a rule comes from: "rule 2 of work.toml", "built-in", a flag."""
    if rule.tier is Tier.BUILTIN:
        return Clean("built-in")
    name = visible_line(PurePath(rule.source).name[:LONG]) or Clean("the policy")
    return Clean(f"rule {rule.index} of {name}") if rule.index else name


def translated_words(agent: Agent, own: str, tool: str) -> str:
    """Return the words for a tool of another agent and what rules see: "Claude Code's Bash as …".

    `own`: the tool's own name. `tool`: the name that rules use.
    """
    same = "" if tool == own else f" as {tool}"
    return visible_line(f"{WORDS[agent].program}'s {own[:LONG]}{same}")


def rule_place(rule: Rule) -> Clean:
    """Return where a rule comes from, worded for use in a sentence.

    Examples are "rule 2 of work.toml", "the option --allowed-tools" and "a built-in rule of Gemini
    CLI".
    """
    source = rule_source(rule)
    if rule.index and rule.tier is not Tier.BUILTIN:
        return source
    if rule.tier is Tier.BUILTIN:
        return Clean(f"a built-in rule of {GEMTUI if rule.source == GEMTUI else 'Gemini CLI'}")
    if source.startswith("-"):
        return Clean(f"the option {source}")
    return Clean(f"the setting {source}") if rule.source else Clean("a rule")
