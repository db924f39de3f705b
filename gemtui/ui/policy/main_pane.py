"""The left half of the policy pane: rules or levels, the mode, and the tools."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from gemtui.ui.draw.lines import own
from gemtui.ui.draw.theme import glyphs_of
from gemtui.ui.kit.bars import BarLine
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.policy.command_preview import CommandPreview
from gemtui.ui.policy.labels import locked_text, mode_line, no_rules, simple_words, title, whose
from gemtui.ui.policy.level_rows import LevelRows
from gemtui.ui.policy.rule_table import Headings, RuleTable
from gemtui.ui.policy.side_pane import brief_command
from gemtui.ui.policy.tool_table import PolicyTools
from gemtui.ui.rules.draft import Draft


class PolicyMain(Vertical):
    """Shows a draft, and posts messages about what the user does."""

    class Moved(Message):
        """Posted when the cursor has moved to a different rule, or the rules have changed."""

    def __init__(self) -> None:
        super().__init__(id="policy-main", classes="pane")
        self._draft: Draft | None = None
        self._words = ""

    def compose(self) -> ComposeResult:
        """Build all parts from top to bottom; CSS classes decide which ones are visible."""
        yield BarLine(id="policy-title")
        yield FilterBar()
        yield Static(id="no-rules")
        yield Headings(id="columns")
        yield RuleTable()
        yield LevelRows()
        yield Static(id="levels-words")
        yield Static(id="mode")
        yield PolicyTools(id="policy-tools")
        yield Static(id="brief")

    @property
    def rules(self) -> RuleTable:
        return self.query_one(RuleTable)

    @property
    def levels(self) -> LevelRows:
        return self.query_one(LevelRows)

    @property
    def simple(self) -> bool:
        """Whether the simple view is shown instead of the table of rules."""
        return self.has_class("-levels")

    @property
    def searching(self) -> bool:
        """Whether only the rules that match a search are shown."""
        return bool(self._words)

    @property
    def typing(self) -> bool:
        """Whether the search field has the focus, or is about to get it."""
        return self.query_one(FilterBar).typing

    @property
    def place(self) -> int | None:
        """The index in the file of the rule under the cursor; None in the simple view."""
        return None if self.simple else self.rules.place

    # --- contents ------------------------------------------------------------------------------

    begun = False
    """Whether the first policy has been opened, or it is clear that there is none."""

    def show(self, draft: Draft, place: int | None = None) -> None:
        """Show the draft.

        `place`: the index of the rule to move the cursor to; None leaves the cursor where it is.
        """
        self._draft = draft
        stuck, glyphs = bool(draft.document.locked), glyphs_of(self.app)
        words = locked_text(draft, glyphs) if stuck else no_rules(draft, glyphs)
        self.query_one("#no-rules", Static).update(words if self.begun else own("reading"))
        self.rules.show_rules(draft, self._words, place)
        self.set_class(stuck or not (draft.entries or self.simple), "-nothing")
        self.levels.show_levels(draft)
        self.query_one("#mode", Static).update(mode_line(draft.mode, glyphs))
        self.query_one(PolicyTools).show(draft)
        self._say_title(draft)
        self._say_level()

    def show_command(self, shown: CommandPreview) -> None:
        """Show the command in brief, for screens that are too narrow for the side pane."""
        self.query_one("#brief", Static).update(brief_command(shown, glyphs_of(self.app)))

    def _say_title(self, draft: Draft) -> None:
        if self.begun:
            said = title(draft, len(self.rules.items), simple=self.simple)
            self.query_one("#policy-title", BarLine).show_parts(list(said), list(whose(draft)))

    def _say_level(self) -> None:
        levels = self.levels
        words = simple_words(levels.others, levels.meaning())
        self.query_one("#levels-words", Static).update(Content("\n").join(words))

    # --- view ----------------------------------------------------------------------------------

    def switch(self, *, simple: bool) -> None:
        """Show the simple view, or else the table of rules."""
        self.set_class(simple, "-levels")
        if self._draft is not None:
            self.show(self._draft)
        self.call_after_refresh(self.take_focus)

    def take_focus(self) -> None:
        """Focus the table of rules or the simple view, whichever is visible."""
        (self.levels if self.simple else self.rules).focus()

    def search(self) -> None:
        """Show the table of rules and open the search field."""
        self.remove_class("-levels")
        self.query_one(FilterBar).open()

    def end_search(self) -> None:
        """Close the search field, and show all rules again."""
        self.query_one(FilterBar).close()

    @on(FilterBar.Changed)
    def _searched(self, event: FilterBar.Changed) -> None:
        event.stop()
        self._words = event.text
        if self._draft is not None:
            self.rules.show_rules(self._draft, self._words)
            self._say_title(self._draft)
            self.post_message(self.Moved())

    @on(FilterBar.Done)
    def _search_done(self, event: FilterBar.Done) -> None:
        self.take_focus()
        if event.opens:
            self.rules.action_open()

    @on(RuleTable.Highlighted)
    def _highlighted(self, event: RuleTable.Highlighted) -> None:
        if isinstance(event, RuleTable.Opened):
            return
        event.stop()
        if event.rows is self.rules:
            self.post_message(self.Moved())
        elif event.rows is self.levels:
            self._say_level()
