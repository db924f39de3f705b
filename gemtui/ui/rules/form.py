"""The form for editing a single rule, which is checked while the user types.

A rule is converted to the values of text fields, and back. Names are separated by commas. Because a
command prefix may contain commas, a single prefix is written as it is, but several are put in
double quotes and separated by commas. A pattern that matches exactly the files under one folder is
shown as that folder.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from tomlkit.exceptions import TOMLKitError

from gemtui.errors import GemtuiError
from gemtui.policy.check.pitfalls import fixable, fixed
from gemtui.policy.edit.document import Document
from gemtui.policy.match.path_patterns import describe_files, folder_pattern
from gemtui.policy.model import tool_catalog
from gemtui.policy.model.rules import Decision, Finding, Rule, Severity
from gemtui.text import clean_line, visible, visible_line
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.clean_widgets import Complete, Dialog, Input, Select, Static, Tick
from gemtui.ui.kit.dialogs import FormScreen, confirm, labelled
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.rules.draw import finding_sign

_WORDS = "files below "
_FRONT = folder_pattern("", ()).partition("/(?!")[0]
"""How a folder's pattern starts if it accepts no project folder before the path."""
_NO_PART = re.compile(r'["\\\x00-\x1f\x7f*?]')


def pattern_folder(pattern: str) -> str:
    """Return the folder, such as "src/", whose files are what a pattern matches.

    This includes files in its subfolders. Returns "" if the pattern matches anything else.
    """
    words = describe_files(pattern) or ""
    return words.removeprefix(_WORDS) if words.startswith(_WORDS) else ""


def pattern_for_folder(folder: str, project: str, before: str = "") -> str:
    """Return a pattern for the files under a folder of the project.

    `folder`: as typed by the user. `project`: the project's path; "" if unknown. `before`: the
    rule's current pattern; if that matches a folder, too, the new pattern stays limited to the same
    projects. Raises ValueError if `folder` isn't a folder of the project.
    """
    name = _name(folder, project.rstrip("/"))
    if old := pattern_folder(before).rstrip("/"):
        end = folder_pattern(old, ()).removeprefix(_FRONT)
        return before.removesuffix(end) + folder_pattern(name, ()).removeprefix(_FRONT)
    return folder_pattern(name, [f"{project.rstrip('/')}/"] if project.rstrip("/") else [])


def _name(folder: str, project: str) -> str:
    text = re.sub(r"(/\*{1,2})?/*$", "", folder.strip())
    if project:
        text = text.removeprefix(f"{project}/")
    name = text.removeprefix("./")
    if not name or name.startswith(("/", "~")) or {".", "..", ""} & {*name.split("/")}:
        raise ValueError("enter a folder of the project, such as src/")
    if _NO_PART.search(name):
        raise ValueError("enter one folder, without quotes, backslashes, * or ?")
    return name


ANYWHERE, HEADLESS, INTERACTIVE = "anywhere", "headless", "interactive"
UNSET, YES, NO = "unset", "yes", "no"
_INTERACTIVE = {ANYWHERE: None, HEADLESS: False, INTERACTIVE: True}
_REDIRECTION = {UNSET: None, YES: True, NO: False}
MODES = ("default", "autoEdit", "plan", "yolo")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """A problem with a field of the form.

    `field`: the field's name.
    """

    field: str
    message: str


Values = Mapping[str, str]
"""The contents of the form, by field; modes are names separated by spaces."""


def values_of(rule: Rule) -> dict[str, str]:
    """Return the values of a form's fields, with control characters made visible."""
    pattern = rule.args_pattern or ""
    folder = pattern_folder(pattern)
    annotations = [
        f"{name} = {tomlkit.item(value).as_string()}"
        for name, value in (rule.annotations or {}).items()
    ]
    texts = {
        "decision": rule.decision.value,
        "priority": f"{rule.priority:g}",
        "tools": ", ".join(rule.tools),
        "command_prefixes": _prefix_text(rule),
        "command_regex": rule.command_regex or "",
        "folder": folder,
        "args_pattern": "" if folder else pattern,
        "mcp_name": rule.mcp_name or "",
        "subagent": rule.subagent or "",
        "annotations": ", ".join(annotations),
        "modes": " ".join(rule.modes),
        "interactive": _key(_INTERACTIVE, rule.interactive),
        "allow_redirection": _key(_REDIRECTION, rule.allow_redirection),
        "deny_message": rule.deny_message or "",
    }
    return {name: _SPACE.sub(" ", visible(text)) for name, text in texts.items()}


_SPACE = re.compile(r"[\n\t]")


def _key(choices: Mapping[str, bool | None], value: bool | None) -> str:
    """Return the name of a choice by its value."""
    names = {choice: name for name, choice in choices.items()}
    return names[value]


def _prefix_text(rule: Rule) -> str:
    """Return command prefixes as text; quoted, unless there is only one that needs no quotes."""
    prefixes = rule.command_prefixes
    if len(prefixes) == 1 and not prefixes[0].startswith('"') and prefixes[0].strip():
        return prefixes[0]
    quoted: list[str] = []
    for prefix in prefixes:
        escaped = prefix.replace("\\", "\\\\").replace('"', '\\"')
        quoted.append(f'"{escaped}"')
    return ", ".join(quoted)


def rule_of(values: Values, base: Rule, project: str = "") -> Rule | FieldProblem:
    """Return the rule that the form describes, or the first problem with a field.

    `base`: the rule that the form was opened with. Whatever the user hasn't changed is taken from
    it, including characters that can't be shown and everything for which the form has no field.
    `project`: the folder that the path in the folder field is relative to; "" if unknown.
    """
    before = values_of(base)
    changed = {name: text for name, text in values.items() if text != before[name]}
    made: dict[str, Any] = {}
    for name, text in changed.items():
        try:
            made |= _READERS[name](text)
        except ValueError as error:
            return FieldProblem(field=name, message=str(error))
    if "folder" in changed or "args_pattern" in changed:
        try:
            made |= _pattern(values["folder"], values["args_pattern"], base, project)
        except ValueError as error:
            return FieldProblem(field="folder", message=str(error))
    return replace(base, **made)


def _pattern(folder: str, pattern: str, base: Rule, project: str) -> dict[str, Any]:
    if not folder.strip():
        return {"args_pattern": pattern or None}
    if pattern:
        raise ValueError("use either this or an argument pattern")
    return {"args_pattern": pattern_for_folder(folder, project, base.args_pattern or "")}


def _priority(text: str) -> dict[str, Any]:
    if not re.fullmatch(r"\s*[0-9]{1,3}\s*", text):
        raise ValueError("enter a whole number from 0 to 999")
    return {"priority": int(text)}


def _tools(text: str) -> dict[str, Any]:
    names = split_names(text)
    return {"tools": names, "tool_list": len(names) > 1}


def _command_prefixes(text: str) -> dict[str, Any]:
    prefixes = _prefixes(text)
    return {"command_prefixes": prefixes, "prefix_list": len(prefixes) > 1}


def _plain(name: str) -> Callable[[str], dict[str, Any]]:
    """Return a function that converts a field's text to the value `name` of a rule.

    The text is used as it is; an empty one becomes None.
    """
    return lambda text: {name: text or None}


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "decision": lambda text: {"decision": Decision(text)},
    "priority": _priority,
    "tools": _tools,
    "command_prefixes": _command_prefixes,
    "command_regex": _plain("command_regex"),
    "folder": lambda _: {},
    "args_pattern": lambda _: {},
    "mcp_name": lambda text: {"mcp_name": text.strip() or None},
    "subagent": lambda text: {"subagent": text.strip() or None},
    "annotations": lambda text: {"annotations": _annotations(text) or None},
    "modes": lambda text: {"modes": tuple(text.split())},
    "interactive": lambda text: {"interactive": _INTERACTIVE[text]},
    "allow_redirection": lambda text: {"allow_redirection": _REDIRECTION[text]},
    "deny_message": _plain("deny_message"),
}


def split_names(text: str) -> tuple[str, ...]:
    """Split text at commas into names; duplicates and empty names are left out."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')


def _prefixes(text: str) -> tuple[str, ...]:
    if not text.lstrip().startswith('"'):
        return (text,) if text.strip() else ()
    found, at = [], 0
    while at < len(text):
        part = _STRING.match(text, at)
        if part is None:
            raise ValueError('put several prefixes in quotes: "pytest", "ruff check"')
        found.append(re.sub(r"\\(.)", r"\1", part[1]))
        at = part.end()
    return tuple(found)


def _annotations(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        table = tomlkit.parse(f"value = {{ {text} }}").unwrap()["value"]
    except TOMLKitError:
        raise ValueError("use the form readOnlyHint = true, destructiveHint = false") from None
    if not isinstance(table, dict):
        raise ValueError("use the form readOnlyHint = true")
    return table


_DECISIONS: dict[str, str] = {
    Decision.ALLOW: "allow: runs without asking",
    Decision.ASK_USER: "ask_user: you decide; headless runs deny it",
    Decision.DENY: "deny: never runs",
}
_SITUATIONS = {
    ANYWHERE: "headless and interactive",
    HEADLESS: "headless runs only",
    INTERACTIVE: "interactive only",
}
_REDIRECTIONS = {UNSET: "Gemini CLI's default: ask", YES: "yes: > and < are allowed too", NO: "no"}
LABELS = {
    "decision": "Decision",
    "priority": "Priority",
    "tools": "Tools",
    "command_prefixes": "Command prefix",
    "folder": "Files under",
    "args_pattern": "Arguments match",
    "modes": "Modes",
    "interactive": "Applies to",
    "deny_message": "Message",
    "allow_redirection": "Redirection",
    "command_regex": "Command regex",
    "mcp_name": "MCP server",
    "subagent": "Subagent",
    "annotations": "Annotations",
}
_HINTS = {
    "priority": "0 to 999; the highest wins",
    "tools": "names separated by commas; empty for any",
    "command_prefixes": 'git status; several: "pytest", "ruff"',
    "folder": "src/, relative to the project",
    "args_pattern": "a regular expression for the arguments",
    "deny_message": "the reason given to the model",
    "command_regex": "anchored at the start of the command",
    "mcp_name": "a server's name; * = any",
    "subagent": ", ".join(tool_catalog.AGENTS),
    "annotations": "readOnlyHint = true",
}
MOST_FINDINGS = 4


def completes(known_names: Sequence[str]) -> Complete:
    """Return a function that completes the last name in a comma-separated list."""

    def complete(text: str) -> str | None:
        front, last = _last_name(text)
        found = next((name for name in known_names if last and name.startswith(last)), None)
        return None if found is None else front + found

    return complete


def _last_name(value: str) -> tuple[str, str]:
    front, comma, last = value.rpartition(",")
    blanks = last[: len(last) - len(last.lstrip())]
    return front + comma + blanks, last.strip()


class RuleReview(NamedTuple):
    """The findings about a rule, and a suggested fix.

    `better`: the fixed rule; None if nothing can be fixed. `fixable`: the findings that the fixed
    rule no longer has.
    """

    findings: tuple[Finding, ...]
    better: Rule | None
    fixable: tuple[Finding, ...] = ()


def review_rule(document: Document, place: int | None, rule: Rule) -> RuleReview:
    """Check a rule as if it were at index `place` of the document.

    `place`: None means at the end, as a new rule. If the document can't be edited, that is the only
    finding.
    """
    try:
        changed = document.add(rule) if place is None else document.replace(place, rule)
    except GemtuiError as error:
        finding = Finding(
            file=document.source, rule=0, field="", severity=Severity.ERROR, message=str(error)
        )
        return RuleReview((finding,), None)
    found = changed.problems[-1 if place is None else place]
    return RuleReview(found, fixed(rule, found), fixable(rule, found))


class RuleForm(FormScreen[Rule]):
    """A dialog to edit a rule; it returns the rule, or None if cancelled.

    `document`: the policy the rule belongs to. `rule`: the initial values. `project`: the folder
    that the path in the folder field is relative to. `place`: the rule's index in the document;
    None for a new rule. `about`: why the form has been opened; shown above the fields.
    """

    BINDINGS = bindings(Where.RULE)
    AUTO_FOCUS = "#tools"

    def __init__(
        self,
        document: Document,
        rule: Rule,
        *,
        project: Path,
        place: int | None = None,
        about: str = "",
    ) -> None:
        super().__init__()
        self._document, self._rule, self._place, self._about = document, rule, place, about
        self._project = str(project)
        self._looked = RuleReview((), None)
        self._filling = False

    def compose(self) -> ComposeResult:
        values = values_of(self._rule)
        with Dialog(
            self._title(), "tab next   space choose   enter apply   esc close", id="rule-form"
        ):
            if self._about:
                yield Static(Content.styled(self._about, "dim"), id="about")
            with VerticalScroll(id="rule-fields", can_focus=False):
                for name, label in LABELS.items():
                    yield labelled(label, self._field(name, values[name]))
                    if name == "tools":
                        yield Static(id="tools-hint", classes="hint")
            yield Static(id="rule-findings")
            yield from self.buttons()

    def _title(self) -> str:
        return "A new rule" if self._place is None else f"Rule {self._place + 1}"

    def _field(self, name: str, value: str) -> Select | Input | Horizontal:
        match name:
            case "decision":
                return Select(_DECISIONS, value=value, id=name)
            case "interactive":
                return Select(_SITUATIONS, value=value, id=name)
            case "allow_redirection":
                return Select(_REDIRECTIONS, value=value, id=name)
            case "modes":
                chosen = value.split()
                ticks = (Tick(mode, mode in chosen, id=mode) for mode in MODES)
                return Horizontal(*ticks, id="modes")
        offered = {
            "tools": [tool.name for tool in tool_catalog.TOOLS] + list(tool_catalog.AGENTS),
            "subagent": list(tool_catalog.AGENTS),
        }
        complete = completes(offered[name]) if name in offered else None
        hint = _HINTS[name]
        return Input(visible_line(value), placeholder=hint, id=name, complete=complete)

    def on_mount(self) -> None:
        self._look()

    # --- checking ------------------------------------------------------------------------------

    @on(Input.Changed)
    @on(Select.Changed)
    @on(Tick.Changed)
    def _look(self) -> None:
        if self._filling:
            return
        self.workers.cancel_group(self, "check")  # it would tell of earlier values
        self.query_one("#tools-hint", Static).update(tool_hint(self._text("tools")))
        rule = self._wanted()
        if isinstance(rule, FieldProblem):
            self._looked = RuleReview((), None)
            self._say([self._wrong(rule)])
        elif self._place is None and rule == self._rule and not rule.tools:
            self._say([])  # nothing has been entered yet
        else:
            self._looked = RuleReview((), None)
            self._check(rule)

    @work(exclusive=True, group="check")
    async def _check(self, rule: Rule) -> None:
        self._looked = await asyncio.to_thread(review_rule, self._document, self._place, rule)
        self._say(list(self._finding_lines()))
        self.refresh_bindings()

    def _finding_lines(self) -> Iterator[Content]:
        """Yield the findings about the rule, the worst first, each with a way out."""
        glyphs = glyphs_of(self.app)
        worst_first = sorted(self._looked.findings, key=lambda finding: finding.severity)
        for finding in worst_first[:MOST_FINDINGS]:
            sign, style = finding_sign(finding, glyphs)
            field = f"{finding.field}: " if finding.field else ""
            message = f"{sign} {finding.severity}: {field}{finding.message}"
            yield Content.styled(clean_line(message), style)
            if finding.way_out:
                key = "  (ctrl+f to apply)" if finding in self._looked.fixable else ""
                yield Content.styled(f"  {clean_line(finding.way_out)}{key}", "dim")

    def _wrong(self, problem: FieldProblem) -> Content:
        sign = glyphs_of(self.app).failed
        message = f"{sign} {LABELS[problem.field]}: {problem.message}"
        return Content.styled(clean_line(message), "$text-error")

    def _say(self, lines: Sequence[Content]) -> None:
        self.query_one("#rule-findings", Static).update(Content("\n").join(lines))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for the key that applies a fix if there is none."""
        del parameters
        return self._looked.better is not None if action == "fix" else True

    # --- values --------------------------------------------------------------------------------

    def _text(self, name: str) -> str:
        return self.query_one(f"#{name}", Input).value

    def _values(self) -> dict[str, str]:
        chosen = ("decision", "interactive", "allow_redirection")
        values = {name: str(self.query_one(f"#{name}", Select).value) for name in chosen}
        ticked = [mode for mode in MODES if self.query_one(f"#{mode}", Tick).value]
        same = {*ticked} == {*self._rule.modes} & {*MODES}
        values["modes"] = " ".join(self._rule.modes if same else ticked)
        return values | {name: self._text(name) for name in LABELS if name not in values}

    def _wanted(self) -> Rule | FieldProblem:
        return rule_of(self._values(), self._rule, self._project)

    def _fill(self, rule: Rule) -> None:
        """Set all fields to a rule's values; check the rule once, not after each field."""
        self._filling = True
        values = values_of(rule)
        for field in self.query(Input):
            field.value = values[field.id or ""]
        for choice in self.query(Select):
            choice.value = values[choice.id or ""]
        for tick in self.query(Tick):
            tick.value = tick.id in rule.modes
        self._filling = False
        self._rule = rule
        self._look()

    # --- actions -------------------------------------------------------------------------------

    @work(exclusive=True, group="take")
    async def action_take(self) -> None:
        """Close the form and return the rule, if Gemini CLI would read it as intended."""
        rule = self._wanted()
        if isinstance(rule, FieldProblem):
            self.query_one(f"#{rule.field}").focus()
            return
        looked = await asyncio.to_thread(review_rule, self._document, self._place, rule)
        if any(finding.severity is Severity.ERROR for finding in looked.findings):
            return
        if self._place is not None or not _allows_anything(rule) or await self._sure():
            self.dismiss(rule)

    async def _sure(self) -> bool:
        return await confirm(
            self.gemtui,
            "Allow every tool?",
            "The rule names no tool and has no condition.",
            ("Everything that no stronger rule denies is then allowed, including commands.",),
            yes="Allow every tool",
            no="Back to the form",
        )

    def action_fix(self) -> None:
        if self._looked.better is not None:
            self._fill(self._looked.better)


def _allows_anything(rule: Rule) -> bool:
    any_tool = rule.mcp_name is None and rule.tools in ((), ("*",))
    return any_tool and rule.decision is Decision.ALLOW and not rule.conditional


def tool_hint(text: str) -> Content:
    """Return a hint about the last tool name in a text field.

    This may be the tool's arguments, possible completions, or a similar name. `text`: the field's
    contents.
    """
    _, last = _last_name(text)
    tool = tool_catalog.tool(last) if last else None
    if tool is not None and tool.name == last:
        return Content.styled(clean_line(f"arguments: {', '.join(tool.arguments)}"), "dim")
    names = [known.name for known in tool_catalog.TOOLS]
    fitting = [name for name in names if last and name.startswith(last)]
    if fitting:
        return Content.styled(clean_line(f"{'  '.join(fitting[:4])}   (right completes)"), "dim")
    meant = tool_catalog.nearest(last) if last else None
    if meant is not None:
        return Content.styled(
            clean_line(f"no tool has this name; did you mean {meant}?"), "$text-warning"
        )
    if not split_names(text):
        return Content.styled("any tool", "dim")
    return Content("")
