"""Pure functions that return labels for the policy pane, such as its title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from textual.content import Content

from gemtui.policy.edit.store import Origin
from gemtui.policy.model.rules import ApprovalMode, Tier
from gemtui.text import clean_line, counted, short_path
from gemtui.ui.draw.lines import fit_end, own
from gemtui.ui.draw.theme import Glyphs
from gemtui.ui.kit.keys import BY_ID
from gemtui.ui.rules.draft import Draft

PATH_ROOM = 30
"""Maximum width in cells of a folder's path."""
_WHOSE = {
    Origin.USER: "Gemini CLI's own",
    Origin.SETTINGS: "listed in settings",
    Origin.ADMIN: "set by the administrator",
}
START_KEYS = ("policy.suggest", "policy.add", "policy.levels", "policy.files", "policy.try_call")


def hint(id: str, glyphs: Glyphs) -> Content:
    """Return a line with a key and what it does; `id`: the key's id in the key table."""
    key = BY_ID[id]
    face = key.footer(ascii=glyphs.ascii)
    return Content.assemble((f"{face:<4}", "bold $text-accent"), (key.help, "dim"))


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
            *(hint(id, glyphs) for id in START_KEYS),
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
    return Content("\n").join([Content.styled(sign, "$text-error"), Content(""), *(hint(id, glyphs) for id in keys)])


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
    path = fit_end(clean_line(short_path(folder)), PATH_ROOM, own(glyphs.ellipsis))
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


def mode_line(mode: ApprovalMode, glyphs: Glyphs) -> Content:
    """Return a line that lists all approval modes, with `mode` marked."""
    parts: list[tuple[str, str]] = [("Approval mode  ", "bold")]
    for each in ApprovalMode:
        here = each is mode
        sign = glyphs.doing if here else " "
        parts.append((f"({sign}) {each.value}  ", "$text-accent" if here else "dim"))
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
