"""The left half of the policy pane: rules or levels, the mode, and the tools, with their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from gemtui.policy.edit.store import Origin
from gemtui.policy.model.rules import ApprovalMode, Tier
from gemtui.text import clean_line, counted, short_path
from gemtui.ui.draw.lines import fit_end
from gemtui.ui.draw.theme import Glyphs, glyphs_of
from gemtui.ui.kit.bars import BarLine, key_line
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.filtering import FilterBar
from gemtui.ui.policy.editor import CommandPreview
from gemtui.ui.policy.levels import LevelRows
from gemtui.ui.policy.rule_table import Headings, RuleTable
from gemtui.ui.policy.side_pane import brief_command
from gemtui.ui.policy.tool_table import PolicyTools
from gemtui.ui.rules.draft import Draft

PATH_ROOM = 30
"""Maximum width in cells of a folder's path."""
_WHOSE = {
    Origin.USER: "Gemini CLI's own",
    Origin.SETTINGS: "listed in settings",
    Origin.ADMIN: "set by the administrator",
}
START_KEYS = (
    "policy.words",
    "policy.suggest",
    "policy.add",
    "policy.levels",
    "policy.files",
    "policy.try_call",
)


def no_rules(draft: Draft, glyphs: Glyphs) -> Content:
    """Return the text that explains, in place of the table, that there are no rules."""
    fresh = draft.opened is None
    head = "No policy yet." if fresh else f"No rules in {clean_line(draft.name)}.toml yet."
    said = (
        "A policy says which tools and commands are allowed, need approval, or are denied.",
        "For each call, the rule with the highest priority wins. Nothing here takes effect",
        "until you save it and start a run with it.",
    )
    return Content("\n").join(
        [
            Content.styled(head, "bold"),
            Content(""),
            Content(" ".join([*said, *_others(draft)])),
            Content(""),
            *(key_line(id, glyphs) for id in START_KEYS),
        ]
    )


def _others(draft: Draft) -> Iterator[str]:
    """Yield a sentence with the number of other policy files that apply, if any do."""
    around = draft.around.before.rules + draft.around.after.rules
    files = {rule.source for rule in around if rule.tier is Tier.USER}
    if files:
        loaded = counted(len(files), "policy file")
        yield f"Gemini CLI also loads {loaded} in every session."


def locked_text(draft: Draft, glyphs: Glyphs) -> Content:
    """Return the text that explains why a file can't be edited rule by rule."""
    sign = f"{glyphs.failed} {clean_line(draft.document.locked)}"
    keys = ("policy.open_file", "policy.files")
    return Content("\n").join(
        [Content.styled(sign, "$text-error"), Content(""), *(key_line(id, glyphs) for id in keys)]
    )


def title(draft: Draft, shown: int, *, simple: bool) -> Iterator[Content]:
    """Yield the parts of the pane's title: the policy's name and its number of rules.

    `shown`: the number of rules that match the search. `simple`: whether the simple view is shown.
    """
    mark = "*" if draft.changed else ""
    yield Content.styled(f"{clean_line(draft.name)}{mark}", "bold")
    total = len(draft.entries)
    count = counted(total, "rule")
    if simple:
        yield Content("levels and lists")
        yield Content.styled(count, "dim")
    else:
        yield Content(count if shown == total else f"{shown:,} of {count}")
        yield Content.styled("highest priority wins", "dim")


def whose(draft: Draft) -> Iterator[Content]:
    """Yield facts about the draft's file, most important first.

    Examples are that it is read-only, or has been changed on disk.
    """
    if draft.read_only:
        yield Content.styled(clean_line(f"read-only: {draft.read_only}"), "$text-warning")
    if draft.moved_on:
        yield Content.styled("changed on disk", "$text-warning")
    if draft.opened is not None and (words := _WHOSE.get(draft.opened.file.origin)):
        yield Content.styled(words, "dim")


def folder_words(folder: Path, glyphs: Glyphs) -> Content:
    """Return a folder's path, cut at its beginning if it is too long."""
    path = fit_end(clean_line(short_path(folder)), PATH_ROOM, glyphs.ellipsis)
    return Content.styled(path, "dim")


def draft_state(draft: Draft, changes: int, *, fixable: bool) -> Iterator[Content]:
    """Yield words about whether the draft is saved, or how many changes are unsaved.

    `fixable`: whether the finding shown beside these words can be fixed; a hint then says that `x`
    does this.
    """
    if draft.changed:
        yield Content(counted(changes, "unsaved change"))
    elif draft.opened is not None:
        yield Content("saved")
    if fixable:
        yield Content("x to fix")


def mode_line(draft: Draft, glyphs: Glyphs) -> Content:
    """Return a line that lists all approval modes, with the draft's marked."""
    parts: list[tuple[str, str]] = [("Approval mode  ", "bold")]
    for offered in ApprovalMode:
        chosen = offered is draft.mode
        sign = glyphs.doing if chosen else " "
        parts.append((f"({sign}) {offered.value}  ", "$text-accent" if chosen else "dim"))
    parts.append(("asks me" * draft.asks, "dim"))
    return Content.assemble(*parts)


def simple_words(others: int, meaning: str) -> Sequence[Content]:
    """Return the lines below the simple view.

    `others`: how many of the policy's rules the view doesn't show. `meaning`: an explanation of the
    choice under the cursor.
    """
    lines = [Content(meaning)]
    if others:
        more = f"{counted(others, 'rule')} not shown in this view. Press l to see all rules."
        lines.append(Content.styled(more, "dim"))
    return lines


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
        self.query_one("#no-rules", Static).update(words if self.begun else "reading")
        self.rules.show_rules(draft, self._words, place)
        self.set_class(stuck or not (draft.entries or self.simple), "-nothing")
        self.levels.show_levels(draft)
        self.query_one("#mode", Static).update(mode_line(draft, glyphs))
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

    @on(FilterBar.QueryChanged)
    def _searched(self, event: FilterBar.QueryChanged) -> None:
        event.stop()
        self._words = event.text
        if self._draft is not None:
            self.rules.show_rules(self._draft, self._words)
            self._say_title(self._draft)
            self.post_message(self.Moved())

    @on(FilterBar.Finished)
    def _search_done(self, event: FilterBar.Finished) -> None:
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
