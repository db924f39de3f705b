"""A dialog to create rules from sentences, with a preview of the resulting rules."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from gemtui.policy.model.rules import Decision, Rule
from gemtui.policy.sentence_parser import Sentence, read_sentences, rules_of, sentence_completions
from gemtui.policy.words import condition_words, decision_word, tools_words
from gemtui.text import clean_line
from gemtui.ui.draw.theme import Glyphs, glyphs_of
from gemtui.ui.kit.clean_widgets import Dialog, Input, Static
from gemtui.ui.kit.dialogs import FieldScreen
from gemtui.ui.kit.keys import Where, bindings
from gemtui.ui.policy.tool_table import tool_rows
from gemtui.ui.rules.draft import Draft
from gemtui.ui.rules.draw import decision_symbol

_OFFERED = 6
_NAMED = 4
"""The maximum number of tools to list per decision; the pane's table lists all."""
_FOLDERS = 200
"""The maximum number of the project's folders to offer as completions."""
_STYLES = {
    Decision.ALLOW: "$text-success",
    Decision.ASK_USER: "$text-warning",
    Decision.DENY: "$text-error",
}


class _Made(NamedTuple):
    """The sentences the user typed, and what their rules decide for each tool."""

    sentences: tuple[Sentence, ...]
    tools: tuple[tuple[Decision, str], ...]


class WordsScreen(FieldScreen[tuple[Rule, ...]]):
    """A dialog that returns the rules that the user's sentences create, or None.

    `project`: the folder that paths in the sentences are relative to. `draft`: the policy to which
    the rules would be added; it also affects the decisions in the preview.
    """

    BINDINGS = bindings(Where.DIALOG)

    def __init__(self, draft: Draft, project: Path) -> None:
        super().__init__()
        self._draft, self._project = draft, project
        self._folders: Sequence[str] = ()

    def compose(self) -> ComposeResult:
        heading = "Rules from sentences"
        with Dialog(heading, "right complete   enter add   esc close", id="words"):
            yield Input(
                placeholder="allow edit src/**; allow npm test; deny everything else",
                complete=self._complete,
                id="sentences",
            )
            yield Static(id="offered", classes="hint")
            with VerticalScroll(id="made", can_focus=False):
                yield Static(id="made-rules")
            yield Static(id="all-tools")

    def on_mount(self) -> None:
        self._look()

    def _complete(self, text: str) -> str | None:
        """Return `text` with its last sentence completed; None if there is no completion."""
        return next(iter(sentence_completions(text, folders=self._folders)), None) if text else None

    @on(Input.Changed)
    @work(exclusive=True, group="look")
    async def _look(self) -> None:
        text = self.query_one("#sentences", Input).value
        if not self._folders:
            self._folders = await asyncio.to_thread(_folders, self._project)
        completions = sentence_completions(text, folders=self._folders)
        last = [completed.rpartition(";")[2].strip() for completed in completions[:_OFFERED]]
        self.query_one("#offered", Static).update(Content(clean_line("   ".join(last))))
        made = await asyncio.to_thread(_make, text, self._project, self._draft)
        glyphs = glyphs_of(self.app)
        self.query_one("#made-rules", Static).update(
            Content("\n").join(_made_lines(made.sentences, glyphs))
        )
        self.query_one("#all-tools", Static).update(
            Content("\n").join(_tool_lines(made.tools, self._draft))
        )

    @work(exclusive=True, group="take")
    async def action_take(self) -> None:
        """Close the dialog and return the rules, unless a sentence has a problem."""
        text = self.query_one("#sentences", Input).value
        made = await asyncio.to_thread(read_sentences, text, self._project)
        if made and not any(sentence.problem for sentence in made):
            self.dismiss(rules_of(made))


def _folders(project: Path) -> tuple[str, ...]:
    """Return the project's folders that aren't hidden; () if they can't be read."""
    try:
        named = [entry.name for entry in project.iterdir() if entry.is_dir()]
    except OSError:
        return ()
    return tuple(sorted(name for name in named if not name.startswith("."))[:_FOLDERS])


def _make(text: str, project: Path, draft: Draft) -> _Made:
    sentences = read_sentences(text, project)
    document = draft.document
    if not document.locked:
        for rule in rules_of(sentences):
            document = document.add(rule)
    policy = draft.around.before + document.policy + draft.around.after
    rows = tool_rows(policy, draft.mode, draft.setup)
    outcomes = [(row.interactive if draft.asks else row.headless, row.tool) for row in rows]
    return _Made(sentences, tuple((outcome.decision, tool) for outcome, tool in outcomes))


def _made_lines(sentences: Sequence[Sentence], glyphs: Glyphs) -> Iterator[Content]:
    """Yield lines with all problems and rules, then lines on what rules don't cover.

    Both are grouped by sentence. What isn't covered is shown for the last sentence first, because
    that is the one the user is typing.
    """
    for sentence in sentences:
        if sentence.problem:
            problem = f"{glyphs.failed} {sentence.text}: {sentence.problem}"
            yield Content.styled(clean_line(problem), "$text-error")
        for rule in sentence.rules:
            yield _rule_line(rule, glyphs)
    for sentence in reversed(sentences):
        if sentence.limits:
            yield Content.styled(clean_line(sentence.text), "dim bold")
        for limit in sentence.limits:
            yield Content.styled(f"  {clean_line(limit)}", "dim")


def _rule_line(rule: Rule, glyphs: Glyphs) -> Content:
    decision = f"{decision_symbol(rule.decision, glyphs)} {decision_word(rule.decision):<5} "
    plain = replace(rule, modes=(), allow_redirection=None)
    words = ", ".join(filter(None, (tools_words(plain), condition_words(plain))))
    plan = ", not in plan mode" if rule.modes else ""
    return Content.assemble((decision, _STYLES[rule.decision]), clean_line(f"{words}{plan}"))


def _tool_lines(tools: Sequence[tuple[Decision, str]], draft: Draft) -> Iterator[Content]:
    asks = "“Ask me” is on" if draft.asks else "headless (ask means deny)"
    yield Content.styled(f"All other calls in mode {draft.mode.value}, {asks}", "bold")
    for decision in _STYLES:
        names = [name for tool_decision, name in tools if tool_decision is decision]
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            line = f"{decision_word(decision):<6}{', '.join(names[:_NAMED])}{more}"
            yield Content.styled(clean_line(line), _STYLES[decision])
