"""Parse sentences such as `allow edit src/**; deny everything else` into rules.

Each sentence has a verb and an object. Specific sentences take precedence over those about a whole
kind of tool, which take precedence over "everything else". Among equally specific sentences, a deny
takes precedence over an ask, and an ask over an allow. For each sentence, the user is also told
what its rules don't cover.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from gemtui.files import is_folder
from gemtui.policy.check.name_check import unmatched_names
from gemtui.policy.match import command_patterns, path_patterns
from gemtui.policy.match.path_patterns import describe_files, projects_of
from gemtui.policy.match.pattern_forms import anywhere_pattern
from gemtui.policy.model.rules import Decision, Rule, Severity
from gemtui.policy.model.tool_catalog import AGENTS, TOOLS, current_name, may_exist
from gemtui.policy.sentence_grammar import (
    REST,
    UnclearSentence,
    check_command,
    example_near,
    is_quoted,
    simple_sentences,
    split_sentences,
)
from gemtui.policy.suggest.prefixes import NoPrefix, prefix_of

_SHELL = "run_shell_command"
_READ = ("read_file", "read_many_files", "list_directory", "glob", "grep_search")
_EDIT = ("write_file", "replace")
_NETWORK = ("web_fetch", "google_web_search")
_KINDS = {
    "read": _READ,
    "edit": _EDIT,
    "write": _EDIT,
    "run": (_SHELL,),
    "shell": (_SHELL,),
    "network": _NETWORK,
    "web": _NETWORK,
    "agents": ("invoke_agent",),
}
"""Maps the words for kinds of tools, as used in sentences, to the tools."""
_VERBS = {
    "allow": Decision.ALLOW,
    "ask": Decision.ASK_USER,
    "deny": Decision.DENY,
    "never": Decision.DENY,
}
_NO_PLAN = ("default", "autoEdit", "yolo")
"""All modes but plan, for rules that would allow writes or commands in plan mode."""

_ORDER = (Decision.ALLOW, Decision.ASK_USER, Decision.DENY)
_OF_THE_REST, _OF_A_KIND, _SPECIFIC = 990, 991, 996
"""The priorities of allow rules: for the rest, a kind of tool, and one object.

A rule that asks has a priority higher by one, a rule that denies by two. But all rules for
"everything else" have the same priority.
"""

OFFERED = ("npm test", "python -m pytest", "git status", "git diff", "git commit", "git push")
"""Common commands, to be offered as completions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of the user, and the rules created from it.

    `problem`: why no rule can be created, with a remedy; "" if there is no problem. `limits`: cases
    that the rules don't cover, and side effects, as sentences.
    """

    text: str
    rules: tuple[Rule, ...] = ()
    limits: tuple[str, ...] = ()
    problem: str = ""


class _About(NamedTuple):
    """The meaning of a sentence's object: a rule, the rule's priority, and its limits.

    The rule itself has priority 0. `priority` depends on how specific the object is, and on the
    decision's position in `_ORDER`.
    """

    rule: Rule
    priority: int
    limits: tuple[str, ...] = ()


def read_sentences(text: str, project: Path | None = None) -> tuple[Sentence, ...]:
    """Parse sentences, which are separated by `;`, line endings, or commas before a new verb.

    `project`: the folder that paths in sentences are relative to; if given, the rules also match
    absolute paths in that folder.
    """
    sentences = [_sentence(part, project) for part in split_sentences(text)]
    together = _together([rule for sentence in sentences for rule in sentence.rules])
    return tuple(_with_limits(sentence, together) for sentence in sentences)


def rules_of(sentences: Sequence[Sentence]) -> tuple[Rule, ...]:
    """Return all sentences' rules without duplicates, the highest priority first."""
    rules: list[Rule] = []
    for sentence in sentences:
        rules += [rule for rule in sentence.rules if rule not in rules]
    return tuple(sorted(rules, key=lambda rule: -rule.priority))


def sentence_of(rule: Rule) -> str:
    """Return a sentence that would create this rule, apart from its priority; or ""."""
    roots = projects_of(rule.args_pattern or "")
    root = roots[0] if roots else command_patterns.allowed_root(rule.command_regex or "")
    project = Path(root) if root else None
    for candidate in _candidates(rule):
        made = _sentence(candidate, project).rules
        if len(made) == 1 and _meaning(made[0]) == _meaning(rule):
            return candidate
    return ""


def _meaning(rule: Rule) -> Rule:
    return replace(rule, priority=0, source="", index=0, tool_list=False, prefix_list=False)


def _candidates(rule: Rule) -> Iterator[str]:
    verb = next(word for word, decision in _VERBS.items() if decision is rule.decision)
    pattern = rule.args_pattern or ""
    objects = list[str]()
    allowed_command = command_patterns.allowed_command(rule.command_regex or "")
    for command in (allowed_command, command_patterns.mentioned_words(pattern)):
        if command:
            objects += [command, f"run {command}", f"'{command}'"]
    kinds = [word for word, tools in _KINDS.items() if {*tools} & {*rule.tools}]
    files = describe_files(pattern) or ""
    for front in ("files below ", "the file ", "paths that name "):
        if files.startswith(front):
            end = "**" if files.endswith("/") else ""
            objects += [f"{kind} {files.removeprefix(front)}{end}" for kind in kinds]
    objects += kinds
    first_tools = list(rule.tools[:1])
    if rule.mcp_name:
        server = f"mcp {rule.mcp_name}"
        objects += [server, *(f"{server} {tool}" for tool in first_tools)]
    for candidate in (*objects, *first_tools, REST):
        yield f"{verb} {candidate}"


# --- one sentence --------------------------------------------------------------------------------


def _sentence(text: str, project: Path | None) -> Sentence:
    rules: list[Rule] = []
    limits: list[str] = []
    try:
        for decision, words in simple_sentences(text, project):
            about = _about(decision, words, project)
            rules.append(replace(_with_names_of_tools(about.rule), priority=about.priority))
            limits += [limit for limit in about.limits if limit not in limits]
    except UnclearSentence as error:
        example = example_near(text, project)
        return Sentence(text=text, problem=f"{error}; write it like this: {example}")
    except ValueError as error:
        return Sentence(text=text, problem=str(error))
    if any(rule.decision is Decision.DENY and rule.tools in (_EDIT, _READ) for rule in rules[1:]):
        limits = [_OTHERS_DENIED if limit == _OF_THE_MODE else limit for limit in limits]
    return Sentence(text=text, rules=tuple(rules), limits=tuple(limits))


def _about(decision: Decision, words: str, project: Path | None) -> _About:
    """Return what a sentence's object means.

    Raises ValueError, with a remedy, for an object that has no meaning.
    """
    first, _, rest = words.partition(" ")
    if words == REST:
        return _everything(decision)
    if first == "mcp":
        return _server(decision, rest)
    if first in _KINDS:
        return _kind(decision, first, rest, project)
    if not rest and _names_tool(words):
        return _whole(decision, (words,))
    if not rest and "_" in words and (meant := current_name(words)):
        raise ValueError(f"there is no tool called {words}: did you mean {meant}?")
    return _command(decision, words, project)


def _with_names_of_tools(rule: Rule) -> Rule:
    """Return a rule whose names are those by which Gemini CLI calls the tools.

    Raises ValueError if the rule would match no tool.
    """
    for draft, better in unmatched_names(rule):
        if better is not None:
            return _with_names_of_tools(better)
        if draft.severity is Severity.ERROR:
            raise ValueError(f"{draft.message}: {draft.way_out}")
    return rule


def _names_tool(word: str) -> bool:
    return ("_" in word or word in ("glob", "replace", *AGENTS)) and may_exist(word)


def _ranked(decision: Decision, allowed: int) -> int:
    return allowed + _ORDER.index(decision)


def _modes(decision: Decision, tools: Sequence[str]) -> tuple[str, ...]:
    changes = {"*", _SHELL, *_EDIT} & {*tools}
    return _NO_PLAN if decision is Decision.ALLOW and changes else ()


def _rule(decision: Decision, tools: Sequence[str], **fields: object) -> Rule:
    rule = Rule(
        decision=decision,
        priority=0,
        tools=tuple(tools),
        tool_list=len(tools) > 1,
        modes=_modes(decision, tools),
    )
    return replace(rule, **fields)  # type: ignore[arg-type]


def _everything(decision: Decision) -> _About:
    asks = decision is Decision.ASK_USER
    rule = _rule(decision, ("*",), args_pattern="." if asks else None)
    said = {
        Decision.ALLOW: (
            "Allows every command, and every tool that the run has, unless another rule denies it; "
            "not in plan mode."
        ),
        Decision.ASK_USER: "In headless runs, which can't ask, everything else is denied.",
        Decision.DENY: "Denies every tool that no sentence allows, including reading, web pages, "
        "MCP tools and subagents.",
    }
    return _About(rule, _OF_THE_REST, (said[decision],))


def _server(decision: Decision, words: str) -> _About:
    server, _, tool = words.partition(" ")
    if not server or " " in tool or not re.fullmatch(r"[\w.-]+", server):
        raise ValueError("name one MCP server, optionally followed by one of its tools: mcp github")
    rule = _rule(decision, (tool or "*",), mcp_name=server, modes=())
    return _About(rule, _ranked(decision, _SPECIFIC if tool else _OF_A_KIND))


def _whole(decision: Decision, tools: Sequence[str]) -> _About:
    """Return a rule for all calls to these tools, with its limits."""
    asks_all = decision is Decision.ASK_USER and _SHELL in tools
    rule = _rule(decision, tools, args_pattern='"command":' if asks_all else None)
    limits = []
    if decision is Decision.ALLOW and _SHELL in tools:
        limits.append("A command can do everything you can, including network access and pushing.")
        limits.append("Gemini CLI still asks about commands that start with a dangerous program.")
    if decision is Decision.ASK_USER:
        limits.append("In headless runs, which can't ask, this means deny.")
    return _About(rule, _ranked(decision, _OF_A_KIND), tuple(limits))


def _kind(decision: Decision, kind: str, rest: str, project: Path | None) -> _About:
    tools = _KINDS[kind]
    if not rest:
        return _whole(decision, tools)
    if tools == (_SHELL,):
        return _command(decision, rest, project)
    if tools not in (_READ, _EDIT):
        raise ValueError(
            f"{kind} can't be followed by a name: write {kind} alone, or the name of a tool"
        )
    return _files(decision, kind, rest, project)


# --- files ---------------------------------------------------------------------------------------


def _files(decision: Decision, kind: str, text: str, project: Path | None) -> _About:
    tools = _KINDS[kind]
    name = re.sub(r"/\*\*(?:/\*)?$", "/", _unquoted(text)).removeprefix("./")
    if re.search(r"[*?\[\]{}]", name):
        raise ValueError(
            "name a folder, such as src/**, or a single file; * and ? can't be used in other ways"
        )
    folder = name.endswith("/") or (project is not None and is_folder(project / name))
    place = path_patterns.locate_in_project(name, project)
    if isinstance(place, str) and decision is Decision.ALLOW:
        raise ValueError(place)
    path = name.strip("/") if isinstance(place, str) else place.path
    if not path or path == ".":
        raise ValueError(f"to match all files, write {kind} alone")
    reads = tools is _READ
    roots = [f"{str(project).rstrip('/')}/"] if project is not None else []
    if decision is not Decision.ALLOW:
        keys = path_patterns.READ_KEYS if reads else "file_path"
        pattern = path_patterns.named_anywhere(path, folder=folder, keys=keys)
        limits = [_HOWEVER, _LINKS]
        if reads:
            limits.append("A search in a parent folder can still read these files.")
        elif decision is Decision.DENY:
            limits.append("Interactive auto_edit sessions don't check the policy for edits.")
    else:
        pattern = path_patterns.folder_pattern(path, roots) if folder else _exactly(path, roots)
        tools = ("read_file",) if reads else tools
        limits = [_LINKS, _OF_THE_MODE]
        if not folder and "." not in path.rpartition("/")[2]:
            limits.append(f"Matches only this file; for a folder, write {kind} {text}/**.")
        if reads:
            limits.append("Allows only read_file; lists and searches need “allow read”.")
    rule = _rule(decision, tools, args_pattern=pattern)
    if decision is Decision.ALLOW and not reads:
        limits.append("Headless runs never edit build files such as package.json.")
    return _About(rule, _ranked(decision, _SPECIFIC), tuple(limits))


def _unquoted(text: str) -> str:
    return text[1:-1] if is_quoted(text) else text


def _exactly(path: str, roots: Sequence[str]) -> str:
    return path_patterns.files_pattern([path], roots)


_LINKS = "A symbolic link can lead elsewhere."
_HOWEVER = (
    "Also covers ./, absolute paths and .., and other folders with this name deeper in the project."
)
_OF_THE_MODE = "Other files are decided by the mode or by other sentences."
_OTHERS_DENIED = "Other files are denied to these tools; a command can still reach them."


# --- commands ------------------------------------------------------------------------------------


def _command(decision: Decision, text: str, project: Path | None) -> _About:
    words = command_patterns.command_words(re.sub(r"[ /]\*+$", "", _unquoted(text)))
    if not is_quoted(text):
        check_command(words, project)
    priority = _ranked(decision, _SPECIFIC)
    if decision is not Decision.ALLOW:
        rule = _rule(decision, (_SHELL,), args_pattern=anywhere_pattern((" ".join(words),)))
        return _About(rule, priority, (_MENTIONED,))
    root = "" if project is None else str(project).rstrip("/")
    regex = command_patterns.allowed(words, root)
    rule = _rule(decision, (_SHELL,), command_regex=regex, allow_redirection=True)
    limits = [f"Allows plain options, {command_patterns.FORMS}.", _NOT_COVERED]
    if words[:2] == ("git", "commit"):
        limits[0] = (
            "Allows git commit -m and -am with a message in double quotes, but no other options."
        )
    opens = prefix_of(" ".join(words))
    what = opens.why if isinstance(opens, NoPrefix) else opens.opens.partition("; ")[2]
    if what and (words[0] != "git" or isinstance(opens, NoPrefix)):
        limits.append(f"Dangerous: {what}." if isinstance(opens, NoPrefix) else f"Beware: {what}.")
    return _About(rule, priority, tuple(limits))


_MENTIONED = "Also matches commands that only mention these words, for example in a commit message."
_NOT_COVERED = "Does not allow quotes, $, ;, other pipes or > FILE; other rules decide those."
_OPEN = (
    "Can be bypassed with an alias, quotes inside a word, a variable or a script. To prevent "
    "that, write "
)
_CLOSING = "“deny everything else”, and allow only the commands that are needed."
_STILL = "Shell commands can still access these files: write “deny everything else”, too."
_STILL_ALL = "Shell commands can still do this: write “deny everything else”, too."
_PROGRAMS = "Allowed commands can still do what this rule denies."


def _closes_shell(rule: Rule) -> bool:
    plain = rule.mcp_name is None and rule.annotations is None and not rule.conditional
    return rule.decision is Decision.DENY and plain and bool({"*", _SHELL} & {*rule.tools})


class _Together(NamedTuple):
    """What all sentences' rules do together.

    `closes_shell`: whether other commands are denied. `allows_reading`: whether files can be read.
    `mentions`: the rules that match a command which contains certain words, each with the words.
    """

    closes_shell: bool
    allows_reading: bool
    mentions: Sequence[tuple[Sequence[str], Rule]]


def _together(rules: Sequence[Rule]) -> _Together:
    mentions = []
    for rule in rules:
        words = command_patterns.mentioned_words(rule.args_pattern or "").split()
        if words:
            mentions.append((words, rule))
    return _Together(any(map(_closes_shell, rules)), any(map(_allows_reading, rules)), mentions)


def _with_limits(sentence: Sentence, together: _Together) -> Sentence:
    """Return the sentence with limits that depend on the other sentences' rules."""
    closed = together.closes_shell
    more = []
    for rule in sentence.rules:
        command = command_patterns.allowed_command(rule.command_regex or "").split()
        over = _first_over(command, together.mentions) if command else None
        if over is not None:
            more.append(f"Never applies, because “{sentence_of(over)}” takes precedence.")
        if _closes_shell(rule) and "*" in rule.tools and not together.allows_reading:
            more.append(
                "An agent that can't read files can do little; to let it read, write “allow read”."
            )
        if rule.decision is Decision.ALLOW or "*" in rule.tools:
            continue
        if not rule.args_pattern:
            if rule.tools in (_EDIT, _READ, _NETWORK) and _OTHERS_DENIED not in sentence.limits:
                more.append(_PROGRAMS if closed else _STILL_ALL)
        elif rule.tools == (_SHELL,) and command_patterns.mentioned_words(rule.args_pattern):
            more.append(_PROGRAMS if closed else _OPEN + _CLOSING)
        elif rule.tools in (_EDIT, _READ):
            more.append(_PROGRAMS if closed else _STILL)
    return replace(sentence, limits=(*sentence.limits, *more))


def _allows_reading(rule: Rule) -> bool:
    return rule.decision is Decision.ALLOW and bool({*_READ, "*"} & {*rule.tools})


def _first_over(
    command: Sequence[str], mentions: Sequence[tuple[Sequence[str], Rule]]
) -> Rule | None:
    """Return the first rule that matches a command because of the words in it."""
    for words, rule in mentions:
        left = iter(command)
        if all(word in left for word in words):
            return rule
    return None


# --- suggestions ---------------------------------------------------------------------------------


def sentence_completions(text: str, *, folders: Sequence[str] = ()) -> tuple[str, ...]:
    """Return completions of the last sentence in `text`.

    Each completion contains all of the text, including the sentences before. `folders`: the
    project's folders, such as "src".
    """
    at = max(text.rfind(";"), text.rfind("\n")) + 1
    blanks = len(text) - at - len(text[at:].lstrip())
    front, last = text[: at + blanks], text[at + blanks :]
    verb, blank, _ = last.partition(" ")
    sentences = ["allow ", "ask ", "deny "]
    if blank:
        if verb.lower() not in _VERBS:
            return ()
        objects = [kind for kind in _KINDS if kind not in ("write", "shell", "web")]
        objects += [f"{kind} {folder}/**" for kind in ("edit", "read") for folder in folders]
        objects += [*OFFERED, REST, *(tool.name for tool in TOOLS)]
        sentences = [f"{verb} {name}" for name in objects]
    return tuple(
        front + sentence for sentence in sentences if sentence.startswith(last) and sentence != last
    )
