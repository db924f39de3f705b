"""The right half of the policy pane: command, file, examples and findings.

The file is shown as a diff to what was saved, with changes marked with `+` and `-`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content

from gemtui.agents import WORDS, Agent
from gemtui.policy.examples import Tried
from gemtui.policy.model.rules import Finding, Severity
from gemtui.policy.words import decision_word
from gemtui.text import clean, clean_line, counted, visible, visible_line
from gemtui.ui.draw.code import highlight
from gemtui.ui.draw.lines import Line, Piece, Pieces, prefixed, wrap
from gemtui.ui.draw.theme import Glyphs, Look, Role, glyphs_of
from gemtui.ui.kit.clean_widgets import Static
from gemtui.ui.kit.text_view import LineView
from gemtui.ui.policy.editor import CommandPreview
from gemtui.ui.rules.draft import Draft
from gemtui.ui.rules.draw import finding_sign
from gemtui.ui.transcript.diff import ground_of, on_ground

MOST_LINES = 2_000
"""The maximum number of lines to show; a longer diff is cut to its changes."""
_AROUND = 3
_MOST_COMPARED = 4_000


class TextDiffLine(NamedTuple):
    """A line of a diff.

    `sign`: "+", "-" or " ", or "…" where lines have been left out. `line`: the 1-based line number
    in the new text; None if the line isn't in it.
    """

    sign: str
    text: str
    line: int | None


class TextDiff(NamedTuple):
    """The lines of a diff, and how many separate changes there are."""

    lines: tuple[TextDiffLine, ...]
    changes: int


def text_diff(old: str, new: str) -> TextDiff:
    """Return the new text as a diff, with removed lines where they used to be.

    If the part that differs is thousands of lines long, its lines aren't compared with each other,
    and it counts as one change.
    """
    before, after = _split(old), _split(new)
    blocks = list(_blocks(before, after))
    changes = sum(tag != "equal" for tag, *_ in blocks)
    lines: list[TextDiffLine] = []
    for tag, old_start, old_end, new_start, new_end in blocks:
        if tag != "equal":
            lines += [TextDiffLine("-", line, None) for line in before[old_start:old_end]]
        sign = " " if tag == "equal" else "+"
        for number in range(new_start, new_end):
            lines.append(TextDiffLine(sign, after[number], number + 1))
    if len(lines) > MOST_LINES:
        lines = list(_cut(lines))
    return TextDiff(tuple(lines), changes)


def lines_changed(old: str, new: str) -> range:
    """Return the range of 1-based line numbers in `new` that contains all changes.

    It covers everything between the lines at the start and at the end that both strings share.
    """
    before, after = _split(old), _split(new)
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return range(start + 1, max(start + 2, len(after) - end + 1))


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the differences in the form of `SequenceMatcher.get_opcodes`.

    For speed, equal lines at the start and end of both strings are skipped.
    """
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    last, until = len(old) - end, len(new) - end
    if start:
        yield "equal", 0, start, 0, start
    if last - start > _MOST_COMPARED or until - start > _MOST_COMPARED:
        yield "replace", start, last, start, until
    else:
        matcher = SequenceMatcher(None, old[start:last], new[start:until], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            yield tag, a + start, b + start, c + start, d + start
    if end:
        yield "equal", last, len(old), until, len(new)


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines at the start are the same in both texts."""
    for number, (old_line, new_line) in enumerate(zip(old, new, strict=False)):
        if old_line != new_line:
            return number
    return min(len(old), len(new))


def _cut(lines: Sequence[TextDiffLine]) -> Iterator[TextDiffLine]:
    """Yield only the changed lines and a few lines around them, up to a limit.

    A line with the sign "…" replaces lines that are left out.
    """
    near: set[int] = set()
    for at, line in enumerate(lines):
        if line.sign != " ":
            near.update(range(at - _AROUND, at + _AROUND + 1))
    near = near or set(range(MOST_LINES))
    shown = sorted(at for at in near if 0 <= at < len(lines))[:MOST_LINES]
    last = -1
    for at in shown:
        if at != last + 1:
            yield TextDiffLine("…", f"{at - last - 1:,} lines", None)
        yield lines[at]
        last = at
    if last + 1 < len(lines):
        yield TextDiffLine("…", f"{len(lines) - last - 1:,} lines", None)


MOST_FINDINGS = 50
_PATH = re.compile(r"(?<![^=])/.*/")
COMMAND = "Command"
AGENT = WORDS[Agent.GEMINI].program
"""Whose command is shown: the runs of other agents get their policies from gemtui itself."""
LONGEST = 2_000
"""The maximum number of characters of a line to show."""


def part_heading(words: str, more: str = "") -> Content:
    """Return the heading for a part of the side pane; `more`: words to show beside it."""
    return Content.assemble((clean_line(words), "bold"), "  ", (clean_line(more), "dim"))


def command_content(shown: CommandPreview, glyphs: Glyphs) -> Content:
    """Return the command with one word per line, followed by notes as comments."""
    lines = []
    if shown.problem:
        lines.append(Content.styled(f"{glyphs.warning} {clean(shown.problem)}", "$text-warning"))
    words = [with_home(word) for word in (*shown.environ, *shown.argv)]
    for at, word in enumerate(words):
        end = " \\" if at + 1 < len(words) else ""
        indent = "  " if word.startswith("-") else ""
        lines.append(Content(f"{indent}{visible_line(word)}{end}"))
    lines += [Content.styled(f"# {clean_line(note)}", "dim") for note in shown.notes]
    return Content("\n").join(lines)


def with_home(word: str) -> str:
    """Return a word of a command with the home folder's path replaced by `$HOME`."""
    home = str(Path.home())
    return re.sub(rf"(?<![^=]){re.escape(home)}(?=/|$)", "$HOME", word)


def brief_command(shown: CommandPreview, glyphs: Glyphs) -> Content:
    """Return a heading and the command on one line, with the folders in paths omitted."""
    if shown.problem:
        text = f"{glyphs.warning} {shown.problem}"
    else:
        text = " ".join(_PATH.sub(f"{glyphs.ellipsis}/", word) for word in shown.argv)
    return Content("\n").join([part_heading(COMMAND, AGENT), Content(visible_line(text))])


def finding_lines(finding: Finding, glyphs: Glyphs, *, fixable: bool) -> Iterator[Content]:
    """Yield a finding as lines: its place and message, then the suggested fix.

    `fixable`: whether the key `x` applies the fix.
    """
    sign, style = finding_sign(finding, glyphs)
    where = f"rule {finding.rule}" if finding.rule else "file"
    field = f", {finding.field}" if finding.field else ""
    message = f"{sign} {finding.severity} in {where}{field}: {finding.message}"
    yield Content.styled(clean_line(message[:LONGEST]), style)
    if finding.way_out:
        key = "x to apply: " if fixable else ""
        yield Content.styled(f"  {key}{clean_line(finding.way_out[:LONGEST])}", "dim")


def example_line(tried: Tried, glyphs: Glyphs) -> Content:
    """Return a line about an example: whether it passed, its call, and any problem."""
    example = tried.example
    call = example.text.partition(": ")[2]
    if tried.passes:
        return Content.styled(clean_line(f"{glyphs.ok} {call}"[:LONGEST]), "dim")
    why = example.problem
    if tried.decision is not None:
        why = f"got {decision_word(tried.decision)}: {call}"
    text = f"{glyphs.failed} line {example.line}: {why}"
    return Content.styled(clean_line(text[:LONGEST]), "$text-error")


def worst_of(findings: Sequence[Finding]) -> Finding | None:
    """Return the most severe finding (the first of equals); None if there are none."""
    return min(findings, key=lambda finding: finding.severity, default=None)


def worst_finding(findings: Sequence[Finding], glyphs: Glyphs) -> Iterator[Content]:
    """Yield a line with the most severe finding, if there are any findings."""
    finding = worst_of(findings)
    if finding is None:
        return
    sign, style = finding_sign(finding, glyphs)
    field = f"{finding.field}: " if finding.field else ""
    text = f"{sign} {finding.severity}: {field}{finding.message}"
    yield Content.styled(clean_line(text[:LONGEST]), style)


class PolicySide(Vertical):
    """The command, the file, the examples and the findings, from top to bottom."""

    def __init__(self) -> None:
        super().__init__(id="policy-side", classes="pane")
        self._marked: TextDiff | None = None
        self._texts: tuple[str, str] | None = None
        self._text: str | None = None
        self.changes = 0

    def compose(self) -> ComposeResult:
        yield Static(id="command-heading", classes="heading")
        with VerticalScroll(id="command-scroll", can_focus=False):
            yield Static(id="command")
        yield Static(id="toml-heading")
        yield LineView(what="the file with its changes", id="toml")
        with VerticalScroll(id="examples-place", can_focus=False):
            yield Static(id="examples")
        yield Static(id="findings-heading")
        with VerticalScroll(id="findings-place", can_focus=False):
            yield Static(id="findings")

    def show_command(self, shown: CommandPreview) -> None:
        heading = part_heading(COMMAND, shown.recipient or AGENT)
        self.query_one("#command-heading", Static).update(heading)
        self.query_one("#command", Static).update(command_content(shown, glyphs_of(self.app)))

    def show(
        self,
        draft: Draft,
        place: int | None,
        *,
        fixable: Collection[Finding] = (),
        more: Sequence[Finding] = (),
    ) -> None:
        """Show the draft's file and findings, with the file scrolled to a rule.

        `place`: the rule's index. `fixable`: the findings that a key can fix. `more`: findings to
        show besides those of the draft.
        """
        texts = draft.saved, draft.document.text
        before, self._text = self._text, texts[1]
        if texts != self._texts or self._marked is None:
            self._texts, self._marked = texts, text_diff(*texts)
        diff = self._marked
        lines = range(0)
        if place is not None and place < len(draft.entries):
            entry = draft.entries[place]
            lines = range(entry.line, entry.line + entry.text.count("\n") + 1)
        toml = self.query_one("#toml", LineView)
        toml.show(lambda look: draw_marked(diff.lines, lines, look), fresh=False)
        if draft.changed and before is not None and before != texts[1]:
            self._bring(diff.lines, lines_changed(before, texts[1]))
        else:
            self._bring(diff.lines, lines)
        self.changes = diff.changes
        kept = "" if draft.opened is None else "saved"
        changes = counted(diff.changes, "unsaved change") if draft.changed else kept
        name = f"{draft.name}.toml" if draft.opened is not None else draft.name
        self.query_one("#toml-heading", Static).update(part_heading(name, changes))
        self._say_findings((*draft.findings, *more), rule_number(draft, place), fixable)

    def _bring(self, lines: Sequence[TextDiffLine], wanted: range) -> None:
        """Scroll to some lines of the file, and to any removed lines above them.

        `lines`: all lines of the displayed diff. `wanted`: the 1-based numbers of the lines in the
        file.
        """
        toml = self.query_one("#toml", LineView)
        at = 0
        while at < len(lines) and lines[at].line not in wanted:
            at += 1
        while at and lines[at - 1].sign == "-":
            at -= 1
        top, height = toml.scroll_offset.y, toml.size.height
        if not top <= at <= top + height - min(len(wanted), height):
            toml.scroll_to(y=max(0, at - 2), animate=False)

    def show_examples(self, tried: Sequence[Tried]) -> None:
        """Show the examples, failing ones first."""
        lines: list[Content] = []
        if tried:
            passed = sum(example.passes for example in tried)
            lines.append(part_heading("Examples", f"{passed:,} of {len(tried):,} as expected"))
            ordered = sorted(tried, key=lambda example: example.passes)
            for example in ordered[:MOST_FINDINGS]:
                lines.append(example_line(example, glyphs_of(self.app)))
        self.query_one("#examples", Static).update(Content("\n").join(lines))

    def _say_findings(
        self, findings: Sequence[Finding], rule: int, fixable: Collection[Finding]
    ) -> None:
        glyphs = glyphs_of(self.app)
        heading = part_heading("Findings", _counted(findings))
        self.query_one("#findings-heading", Static).update(heading)
        own_first = sorted(findings, key=lambda finding: finding.rule != rule)
        lines: list[Content] = []
        for finding in own_first[:MOST_FINDINGS]:
            lines += finding_lines(finding, glyphs, fixable=finding in fixable)
        if len(findings) > MOST_FINDINGS:
            lines.append(Content(f"{glyphs.ellipsis} and {len(findings) - MOST_FINDINGS} more"))
        self.query_one("#findings", Static).update(Content("\n").join(lines))


def _counted(findings: Sequence[Finding]) -> str:
    """Return the numbers of errors and warnings, such as `1 error, 3 warnings`.

    Returns `none` if there are none.
    """
    counts = Counter(finding.severity for finding in findings)
    parts = [counted(counts[severity], str(severity)) for severity in Severity if counts[severity]]
    return ", ".join(parts) or "none"


def rule_number(draft: Draft, place: int | None) -> int:
    """Return the number that findings use for the rule at an index, or 0 if none."""
    if place is None or place >= len(draft.entries):
        return 0
    rule = draft.entries[place].rule
    return 0 if rule is None else rule.index


_SIGNS = {"+": Role.ADDED, "-": Role.REMOVED, "…": Role.MUTED, " ": Role.TEXT}


def draw_marked(lines: Sequence[TextDiffLine], rule_lines: range, look: Look) -> list[Line]:
    """Render a diff, with a bar beside the lines of the selected rule.

    `rule_lines`: the 1-based numbers of these lines in the file.
    """
    if not lines:
        return [Line((Piece("The file is empty.", look[Role.MUTED]),))]
    code = "\n".join(visible(line.text[:LONGEST].removesuffix("\r")) for line in lines)
    drawn: list[Line] = []
    for line, text in zip(lines, _highlighted(code, look), strict=True):
        drawn += _drawn(line, text, rule_lines, look)
    return drawn


@lru_cache(maxsize=2)
def _highlighted(code: str, look: Look) -> tuple[Pieces, ...]:
    """Return highlighted lines of TOML.

    The result is cached because each move of the cursor redraws the file.
    """
    return tuple(highlight(code, "toml", look))


def _drawn(line: TextDiffLine, text: Pieces, rule_lines: range, look: Look) -> Iterator[Line]:
    style = look[_SIGNS[line.sign]]
    glyphs = look.glyphs
    sign = {"-": glyphs.removed, "…": glyphs.dot}.get(line.sign, line.sign)
    bar = Piece(glyphs.bar if line.line in rule_lines else " ", look[Role.CURSOR])
    ground = ground_of(line.sign, look)
    front = (bar, Piece(sign, style + ground))
    rest = (bar, Piece(" ", style + ground))
    text = on_ground(line.sign, text, look)
    for row in prefixed(wrap(text, max(1, look.width - 2)), front, rest):
        yield Line(row.pieces, row.margin, row.joint, ground=ground)
