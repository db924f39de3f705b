"""Find rules that don't do what they seem to do, and suggest better ones.

Each case was observed in the real CLI (assets/gemini-cli.md#args-text, #shell-rules, #tool-names).
A suggested rule does what most readers would expect of the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gemtui.calls.shell.parser import parse_command
from gemtui.calls.shell.program_table import program_table
from gemtui.policy.check.name_check import NameFinding, unmatched_names
from gemtui.policy.engine.decide import Engine
from gemtui.policy.engine.refusals import BUILD_FILES
from gemtui.policy.engine.setup import Setup
from gemtui.policy.file.policy import Policy
from gemtui.policy.file.rule_codec import value_to_toml
from gemtui.policy.match import pattern_forms as forms
from gemtui.policy.match.command_patterns import command_words
from gemtui.policy.match.matching import SHELL, pattern_sources
from gemtui.policy.match.patterns import alternatives
from gemtui.policy.model.rules import (
    ApprovalMode,
    Call,
    Decision,
    Finding,
    FindingDraft,
    Rule,
    Tier,
    findings,
    warned,
)
from gemtui.policy.model.tool_catalog import AGENTS, ALIASES
from gemtui.text import or_list

_OUTSIDE_PLAN = ("default", "autoEdit", "yolo")
_OPENING = frozenset({"*", SHELL, "write_file", "replace"})

HIDDEN_MESSAGE = (
    "its denyMessage is never shown, because a tool that is always denied is hidden from the model"
)
"""The warning that a deny rule's message is never shown.

It is given for a rule checked by itself, and withdrawn if a stronger rule in the same policy keeps
the tool visible: then the message is shown after all.
"""

_STEPS = 100
"""The maximum number of fixes applied to one rule in succession; prevents a loop."""

Pitfall = NameFinding
"""A warning, and a corrected rule; None if no correction can be derived."""


def pitfalls(rule: Rule) -> Iterator[FindingDraft]:
    """Yield a warning for each part of a rule whose effect was probably not intended."""
    for look in _LOOKS:
        for message, _fixed in look(rule):
            yield message


def fixed(rule: Rule, rule_findings: Iterable[Finding] | None = None) -> Rule | None:
    """Return the rule rewritten to do what was probably intended.

    Returns None if nothing can be corrected. `rule_findings`: the findings from a check of the rule
    together with the rest of its policy; None means that only the rule itself is considered.
    """
    better = rule
    messages = None if rule_findings is None else {finding.message for finding in rule_findings}
    for _ in range(_STEPS):
        step = _fix(better, visible=messages is not None and HIDDEN_MESSAGE not in messages)
        if step is None:
            break
        better = step
    return None if better == rule else better


def _fix(rule: Rule, *, visible: bool) -> Rule | None:
    """Return the rule with one thing corrected; None if nothing can be.

    `visible`: whether the model sees the rule's message.
    """
    for look in (unmatched_names, *_LOOKS):
        if visible and look is _hidden_message:
            continue
        for _, fix in look(rule):
            if fix is not None and fix != rule:
                return fix
    return None


def fixable(rule: Rule, rule_findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings about a rule that `fixed` would correct."""
    fixes = {
        draft.message
        for look in (unmatched_names, *_LOOKS)
        for draft, fix in look(rule)
        if fix is not None
    }
    return tuple(finding for finding in rule_findings if finding.message in fixes)


def _is_shell(rule: Rule) -> bool:
    return rule.mcp_name is None and bool({SHELL, "*"} & {*rule.tools})


def _unconditional(rule: Rule) -> bool:
    return pattern_sources(rule) == (None,)


def _rewrite(field: str, message: str, pattern: str) -> FindingDraft:
    """Return a warning whose remedy is to write another pattern."""
    return warned(field, message, f"write {value_to_toml(pattern)}")


# --- shell commands by prefix --------------------------------------------------------------------


def _blank_in_prefix(rule: Rule) -> Iterator[Pitfall]:
    stripped = tuple(prefix.strip(" ") for prefix in rule.command_prefixes)
    for prefix, bare in zip(rule.command_prefixes, stripped, strict=True):
        if prefix == bare or not bare:
            continue
        if prefix.endswith(" "):
            message = f'"{prefix}" ends with a space, so it matches only if a second space follows'
        else:
            message = f'"{prefix}" starts with a space, so it matches no command'
        fix = replace(rule, command_prefixes=tuple(filter(None, stripped)))
        yield warned("commandPrefix", message, f'write "{bare}"'), fix


def _chain_in_prefix(rule: Rule) -> Iterator[Pitfall]:
    if rule.decision is not Decision.ALLOW:
        return
    for prefix in rule.command_prefixes:
        reading = parse_command(prefix)
        parts = tuple(part.text for part in reading.parts if not part.whole)
        if not parts or (len(parts) == 1 and not reading.redirected):
            continue
        way_out = (
            f"write a separate prefix for each command: {', '.join(map(value_to_toml, parts))}"
        )
        if reading.redirected:
            way_out += ", and allowRedirection = true"
        kept = tuple(other for other in rule.command_prefixes if other != prefix)
        fix = replace(
            rule,
            command_prefixes=tuple(dict.fromkeys((*kept, *parts))),
            prefix_list=True,
            allow_redirection=True if reading.redirected else rule.allow_redirection,
        )
        message = (
            f'"{prefix}" allows nothing, because each command in a line is matched separately and '
            "without its redirections"
        )
        yield warned("commandPrefix", message, way_out), fix


def _program_of_prefix(rule: Rule) -> Iterator[Pitfall]:
    if rule.decision is not Decision.ALLOW:
        return
    for prefix in rule.command_prefixes:
        name = (prefix.split() or [""])[0]
        table = program_table()
        why = table.why_never(name)
        if table.is_in(name, "shells"):
            why = table.reason("runs")
        if why:
            message = (
                f'"{prefix}" allows everything that {name} can do: {why}; a rule with a prefix '
                "also disables the check for dangerous commands"
            )
            way_out = "allow only the complete commands that are needed"
            yield warned("commandPrefix", message, way_out), None


def _deny_by_prefix(rule: Rule) -> Iterator[Pitfall]:
    prefixes = tuple(filter(str.strip, rule.command_prefixes))
    if rule.decision is not Decision.DENY or not prefixes or rule.tools != (SHELL,):
        return
    pattern = forms.anywhere_pattern(prefixes)
    first = prefixes[0]
    ways = [f'"{front}{first}"' for front in ("X=1 ", "/usr/bin/", "env ")]
    message = (
        f"easily bypassed, for example by {or_list((*['an extra space'] * (' ' in first), *ways))}"
    )
    named = or_list(f"“{prefix}”" for prefix in prefixes)
    way_out = (
        f"deny commands that contain the words {named} (an alias or a script can still bypass "
        f"this): argsPattern = {value_to_toml(pattern)}"
    )
    fix = replace(rule, command_prefixes=(), prefix_list=False, args_pattern=pattern)
    yield warned("commandPrefix", message, way_out), fix


# --- commandRegex --------------------------------------------------------------------------------


def _regex(rule: Rule) -> Iterator[Pitfall]:
    if not rule.command_regex or rule.command_prefixes:
        return
    pattern = rule.command_regex
    if forms.anchored(pattern):
        bare = forms.without_anchors(pattern)
        message = (
            "^ and $ never match here, because the pattern already starts at the beginning of "
            "the command"
        )
        way_out = f"""write {value_to_toml(bare)}, where " is the command's end"""
        yield warned("commandRegex", message, way_out), replace(rule, command_regex=bare)
    if alternatives(pattern):
        grouped = f"(?:{pattern})"
        message = (
            "only the part before the first | is matched at the start of the command; the other "
            "parts match anywhere in the arguments"
        )
        yield _rewrite("commandRegex", message, grouped), replace(rule, command_regex=grouped)


def _deny_by_regex(rule: Rule) -> Iterator[Pitfall]:
    pattern = rule.command_regex
    if rule.decision is not Decision.DENY or not pattern or rule.command_prefixes:
        return
    if pattern.startswith((".*", "[^")) or alternatives(pattern):
        return
    better = forms.anywhere_in_command(pattern)
    message = "easily bypassed, because the pattern matches only at the start of the command"
    yield _rewrite("commandRegex", message, better), replace(rule, command_regex=better)


# --- argsPattern ---------------------------------------------------------------------------------


def _arguments(rule: Rule) -> str:
    """Return the argsPattern; "" if commandPrefix or commandRegex overrides it."""
    return "" if rule.command_prefixes or rule.command_regex else rule.args_pattern or ""


def _plain_json(rule: Rule) -> Iterator[Pitfall]:
    pattern = _arguments(rule)
    if not pattern:
        return
    if forms.never_anchored(pattern):
        bare = forms.without_outer_anchors(pattern)
        message = "^ and $ never match here, because the arguments start with { and end with }"
        yield _rewrite("argsPattern", message, bare), replace(rule, args_pattern=bare)
    marked = forms.with_marks(pattern)
    if marked != pattern:
        message = (
            "the pattern expects plain JSON, but the arguments have no blanks, and each has a NUL "
            "before and after it, so it never matches"
        )
        yield _rewrite("argsPattern", message, marked), replace(rule, args_pattern=marked)


def _quotes(rule: Rule) -> Iterator[Pitfall]:
    message = 'a quote in an argument is compared as \\", so the pattern never matches'
    regex = "" if rule.command_prefixes else rule.command_regex or ""
    escaped = forms.with_escaped_quotes(regex, "x")
    if escaped != regex:
        yield _rewrite("commandRegex", message, escaped), replace(rule, command_regex=escaped)
    pattern = forms.with_marks(_arguments(rule))
    escaped = forms.with_escaped_quotes(pattern)
    if escaped != pattern:
        yield _rewrite("argsPattern", message, escaped), replace(rule, args_pattern=escaped)


def _path(rule: Rule) -> Iterator[Pitfall]:
    pattern = _arguments(rule)
    named = forms.path_in(pattern)
    if named is None or ".." in named[1] or "\\." * 2 in named[1] or rule.mcp_name:
        return
    key, value = named
    if rule.decision is Decision.ALLOW:
        if forms.exact_path(pattern):
            return
        better = forms.inside_folder(pattern)
        message = (
            f"{key} is compared as the model sent it, so a path that leaves the folder with .. "
            "is also allowed"
        )
        way_out = "exclude .. in the pattern"
    else:
        loose = value.startswith((".*", '[^"]*', "(", "["))
        if loose or value.startswith(("/", "\\/")):
            return
        better = forms.all_spellings_pattern(pattern)
        message = (
            f"{key} is compared as the model sent it, so ./ at the start or an absolute path "
            "bypasses the rule"
        )
        way_out = "match the path anywhere in the argument"
    if better is None:
        yield warned("argsPattern", message, way_out), None
        return
    yield _rewrite("argsPattern", message, better), replace(rule, args_pattern=better)


def _description(rule: Rule) -> Iterator[Pitfall]:
    if SHELL in rule.tools and '"description"' in _arguments(rule):
        message = "each command of a chain such as a && b is checked without the description"
        yield warned("argsPattern", message, 'match "command" alone'), None


def _build_files(rule: Rule) -> Iterator[Pitfall]:
    pattern = _arguments(rule).replace("\\", "")
    if rule.decision is Decision.ALLOW and {"write_file", "replace"} & {*rule.tools}:
        names = sorted(name for name in BUILD_FILES if f'{name}"' in pattern)
        if names:
            message = f"{names[0]} is a build file, and headless runs can never change build files"
            yield warned("argsPattern", message, "change the file yourself"), None


# --- without conditions --------------------------------------------------------------------------


def _ask_of_shell(rule: Rule) -> Iterator[Pitfall]:
    if rule.decision is Decision.ASK_USER and _is_shell(rule) and _unconditional(rule):
        pattern = '"command":' if rule.tools == (SHELL,) else "."
        message = (
            "safe commands such as ls, cat, git status or grep run without asking, even in "
            "headless runs"
        )
        way_out = f"argsPattern = {value_to_toml(pattern)} makes Gemini CLI ask for all commands"
        yield warned("decision", message, way_out), replace(rule, args_pattern=pattern)


def _allow_of_shell(rule: Rule) -> Iterator[Pitfall]:
    if rule.decision is Decision.ALLOW and _is_shell(rule) and _unconditional(rule):
        message = (
            "commands that start with a dangerous program (rm -rf q) still need approval, and are "
            "denied in headless runs; after another command (true && rm -rf q), they run"
        )
        way_out = "allow only the commands that are needed, with commandPrefix"
        yield warned("decision", message, way_out), None


def _hidden_message(rule: Rule) -> Iterator[Pitfall]:
    if rule.decision is not Decision.DENY or not rule.deny_message or not _unconditional(rule):
        return
    per_call = (*AGENTS, *ALIASES)
    if rule.subagent is not None or all(name in per_call for name in rule.tools):
        return
    way_out = (
        'write argsPattern = ".": the tool then stays visible, and the model reads the denyMessage'
    )
    yield warned("denyMessage", HIDDEN_MESSAGE, way_out), replace(rule, args_pattern=".")


def _plan_mode(rule: Rule) -> Iterator[Pitfall]:
    if rule.decision is not Decision.ALLOW or rule.modes or rule.mcp_name is not None:
        return
    opened = sorted(_OPENING & {*rule.tools})
    if opened:
        message = f"because the rule has no modes, it also allows {or_list(opened)} in plan mode"
        way_out = f"write modes = {value_to_toml(_OUTSIDE_PLAN)}"
        yield (
            warned("modes", message, way_out, mode=ApprovalMode.PLAN),
            replace(rule, modes=_OUTSIDE_PLAN),
        )


def _old_name(rule: Rule) -> Iterator[Pitfall]:
    old = [name for name in rule.tools if name in ALIASES]
    if rule.decision is Decision.DENY and old and not rule.mcp_name:
        new = tuple(dict.fromkeys(ALIASES.get(name, name) for name in rule.tools))
        message = (
            f"the rule denies an older name of the tool; {ALIASES[old[0]]} is still offered, "
            "but each call fails"
        )
        yield warned("toolName", message, f'write "{ALIASES[old[0]]}"'), replace(rule, tools=new)


_LOOKS: tuple[Callable[[Rule], Iterable[Pitfall]], ...] = (
    _old_name,
    _blank_in_prefix,
    _chain_in_prefix,
    _program_of_prefix,
    _deny_by_prefix,
    _regex,
    _deny_by_regex,
    _plain_json,
    _quotes,
    _path,
    _description,
    _build_files,
    _ask_of_shell,
    _allow_of_shell,
    _hidden_message,
    _plan_mode,
)


def mode_findings(policy: Policy, mode: ApprovalMode, setup: Setup) -> tuple[Finding, ...]:
    """Return a warning for each allow rule whose condition has no effect in this mode.

    A condition has no effect if calls that don't meet it are allowed anyway. Call this on a
    background thread, because it takes some time: it runs the engine once per tool.
    """
    return tuple(_findings(policy, Engine(policy, mode=mode, setup=setup)))


def _findings(policy: Policy, engine: Engine) -> Iterator[Finding]:
    mode = engine.mode
    for rule in policy.rules:
        if rule.decision is not Decision.ALLOW or not rule.conditional or rule.tier is Tier.BUILTIN:
            continue
        if rule.mcp_name or rule.subagent or (rule.modes and mode.in_rules not in rule.modes):
            continue
        tools = [tool for tool in rule.tools if tool != "*"]
        if tools and all(engine.outcome(Call(tool)).decision is Decision.ALLOW for tool in tools):
            message = (
                f"has no effect in mode {mode.value}, where every call of {tools[0]} is "
                "allowed anyway"
            )
            way_out = "add a rule with a lower priority that denies all other calls of the tool"
            draft = warned("decision", message, way_out, mode=mode)
            yield from findings([draft], rule.source, rule.index)


# --- forms of a test command --------------------------------------------------------------------

_TESTERS = frozenset(
    {
        "ctest",
        "jest",
        "mocha",
        "nox",
        "phpunit",
        "pytest",
        "rspec",
        "test",
        "tox",
        "unittest",
        "vitest",
    }
)
"""Words in commands that run tests, such as `npm test` and `python -m pytest`."""
_FORMS = {
    "`2>&1`": "{} 2>&1",
    "`| tail`": "{} | tail",
    "`cd FOLDER &&`": "cd src && {}",
    "`CI=1` before it": "CI=1 {}",
}


def missed_forms(rules: Sequence[Rule]) -> Mapping[int, tuple[FindingDraft, ...]]:
    """Find rules that allow a test command, but not all forms in which agents run it.

    Agents rarely run a plain `npm test`: they change the folder, redirect stderr to stdout, and
    shorten the output. A commandPrefix covers none of these forms in Gemini CLI
    (assets/gemini-cli.md#shell-rules). So calls that a rule seems to allow need approval, or are
    denied.

    `rules`: in load order. A form that any of the rules allows isn't missed. Returns a mapping from
    each rule's index in `rules` to its findings.
    """
    drafts: dict[int, tuple[FindingDraft, ...]] = {}
    engines: dict[ApprovalMode, Engine] = {}
    for index, rule in enumerate(rules):
        prefixes = [prefix for prefix in rule.command_prefixes if _runs_tests(prefix)]
        modes = [mode for mode in ApprovalMode if not rule.modes or mode.in_rules in rule.modes]
        if not prefixes or rule.decision is not Decision.ALLOW or rule.subagent or rule.mcp_name:
            continue
        if modes:
            mode = modes[0]
            if mode not in engines:
                engines[mode] = Engine(Policy(rules=tuple(rules)), mode=mode, setup=Setup())
            missed = [_missed(prefix, engines[mode]) for prefix in prefixes]
            drafts[index] = tuple(draft for draft in missed if draft is not None)
    return drafts


def _runs_tests(prefix: str) -> bool:
    try:
        return not _TESTERS.isdisjoint(command_words(prefix))
    except (ValueError, IndexError):
        return False


def _missed(prefix: str, engine: Engine) -> FindingDraft | None:
    def allows(command: str) -> bool:
        return engine.outcome(Call(SHELL, {"command": command})).decision is Decision.ALLOW

    missed = [name for name, form in _FORMS.items() if not allows(form.format(prefix))]
    if not missed or not allows(prefix):
        return None
    names = ", ".join(missed)
    message = f'"{prefix}" misses forms in which agents often run it: {names}'
    way_out = f"add the rule that gemtui policy words 'allow {prefix}' prints"
    return warned("commandPrefix", message, way_out)
