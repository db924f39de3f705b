"""The form for editing a single rule, which is checked while the user types."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content

from gemtui.errors import GemtuiError
from gemtui.policy.check.pitfalls import fixable, fixed
from gemtui.policy.edit.document import Document
from gemtui.policy.model import tool_catalog
from gemtui.policy.model.rules import Decision, Finding, Rule, Severity
from gemtui.text import Clean, clean_line, visible_line
from gemtui.ui.draw.lines import EMPTY, own
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.clean_widgets import Complete, Dialog, Input, Select, Static, Tick
from gemtui.ui.kit.dialogs import FormScreen, confirm, labelled
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.rules import form_fields
from gemtui.ui.rules.draw import finding_sign
from gemtui.ui.rules.form_fields import MODES, FieldProblem, rule_of, split_names, values_of

_DECISIONS: dict[str, str] = {
    Decision.ALLOW: "allow: runs without asking",
    Decision.ASK_USER: "ask_user: you decide; headless runs deny it",
    Decision.DENY: "deny: never runs",
}
_SITUATIONS = {
    form_fields.ANYWHERE: "headless and interactive",
    form_fields.HEADLESS: "headless runs only",
    form_fields.INTERACTIVE: "interactive only",
}
_REDIRECTION = {
    form_fields.UNSET: "Gemini CLI's default: ask",
    form_fields.YES: "yes: > and < are allowed too",
    form_fields.NO: "no",
}
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

if TYPE_CHECKING:
    pass


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
        finding = Finding(file=document.source, rule=0, field="", severity=Severity.ERROR, message=str(error))
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
        self, document: Document, rule: Rule, *, project: Path, place: int | None = None, about: Clean = EMPTY
    ) -> None:
        super().__init__()
        self._document, self._rule, self._place, self._about = document, rule, place, about
        self._project = str(project)
        self._looked = RuleReview((), None)
        self._filling = False

    def compose(self) -> ComposeResult:
        values = values_of(self._rule)
        with Dialog(self._title(), own("tab next   space choose   enter apply   esc close"), id="rule-form"):
            if self._about:
                yield Static(Content.styled(self._about, "dim"), id="about")
            with VerticalScroll(id="rule-fields", can_focus=False):
                for name, label in LABELS.items():
                    yield labelled(label, self._field(name, values[name]))
                    if name == "tools":
                        yield Static(id="tools-hint", classes="hint")
            yield Static(id="rule-findings")
            yield from self.buttons()

    def _title(self) -> Clean:
        return own("A new rule" if self._place is None else f"Rule {self._place + 1}")

    def _field(self, name: str, value: str) -> Select | Input | Horizontal:
        match name:
            case "decision":
                return Select(_DECISIONS, value=value, id=name)
            case "interactive":
                return Select(_SITUATIONS, value=value, id=name)
            case "allow_redirection":
                return Select(_REDIRECTION, value=value, id=name)
            case "modes":
                chosen = value.split()
                ticks = (Tick(own(each), each in chosen, id=each) for each in MODES)
                return Horizontal(*ticks, id="modes")
        offered = {
            "tools": [tool.name for tool in tool_catalog.TOOLS] + list(tool_catalog.AGENTS),
            "subagent": list(tool_catalog.AGENTS),
        }
        complete = completes(offered[name]) if name in offered else None
        hint = _HINTS[name]
        return Input(visible_line(value), placeholder=own(hint), id=name, complete=complete)

    def on_mount(self) -> None:
        self._look()

    # --- checking ------------------------------------------------------------------------------

    @on(Input.Changed)
    @on(Select.Changed)
    @on(Tick.Changed)
    def _look(self) -> None:
        if self._filling:
            return
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
        self._say(list(self._found_lines()))
        self.refresh_bindings()

    def _found_lines(self) -> Iterator[Content]:
        glyphs = glyphs_of(self.app)
        for finding in sorted(self._looked.findings, key=lambda each: each.severity)[:MOST_FINDINGS]:
            sign, style = finding_sign(finding, glyphs)
            field = f"{finding.field}: " if finding.field else ""
            words = clean_line(f"{sign} {finding.severity}: {field}{finding.message}")
            yield Content.styled(words, style)
            if finding.way_out:
                key = "  (ctrl+f to apply)" if finding in self._looked.fixable else ""
                yield Content.styled(f"  {clean_line(finding.way_out)}{key}", "dim")

    def _wrong(self, problem: FieldProblem) -> Content:
        sign = glyphs_of(self.app).failed
        words = f"{sign} {LABELS[problem.field]}: {problem.message}"
        return Content.styled(clean_line(words), "$text-error")

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
            own("Allow every tool?"),
            own("The rule names no tool and has no condition."),
            (own("Everything that no stronger rule denies is then allowed, including commands."),),
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
    found = tool_catalog.tool(last) if last else None
    if found is not None and found.name == last:
        return Content.styled(clean_line(f"arguments: {', '.join(found.arguments)}"), "dim")
    fitting = [tool.name for tool in tool_catalog.TOOLS if last and tool.name.startswith(last)]
    if fitting:
        return Content.styled(clean_line(f"{'  '.join(fitting[:4])}   (right completes)"), "dim")
    meant = tool_catalog.nearest(last) if last else None
    if meant is not None:
        return Content.styled(clean_line(f"no tool has this name; did you mean {meant}?"), "$text-warning")
    if not split_names(text):
        return Content.styled("any tool", "dim")
    return Content("")
