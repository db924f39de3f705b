"""Text: Markdown of answers, prompts as typed, wrapping, code and its copy."""

from __future__ import annotations

from dataclasses import replace

from gemtui.text import Clean
from gemtui.transcript.model import Author, Text
from gemtui.ui.draw.lines import Piece, fit, fit_end, plain, wrap, wrap_anywhere
from gemtui.ui.draw.theme import Role, plain_look
from gemtui.ui.transcript.message import Drawn, draw_message
from tests.rows import each_row
from tests.ui.transcript.samples import NOW, body, drawn, look, said


def answer(text: str, width: int = 40) -> list[str]:
    return [
        line.removeprefix("▌").removeprefix(" ")
        for line in body(drawn(Text(text=text), width=width))
    ]


def prompt(text: str, width: int = 40) -> Drawn:
    return drawn(Text(text=text), width=width, author=Author.USER)


@each_row(
    ("source", "expected"),
    [
        ("# One\ntext", ["One", "", "text"]),
        ("a\nb", ["a", "b"]),
        ("a **b** *c* `d` ~~e~~", ["a b c d e"]),
        ("- a\n- b\n\n  c", ["• a", "", "• b", "", "  c"]),
        ("9. a\n10. b", [" 9. a", "10. b"]),
        ("- [ ] a\n- [X] b", ["[ ] a", "[✓] b"]),
        ("> a\n>\n> b", ["▎ a", "▎", "▎ b"]),
        ("[x](http://y)", ["x (http://y)"]),
        ("[http://y](http://y)", ["http://y"]),
        ("[](http://y)", ["http://y"]),
        ("![alt](a.png)", ["[image: alt] (a.png)"]),
        ("---", ["─" * 38]),
        ("<div>\nx\n</div>", ["<div>", "x", "</div>"]),
        ("    code\n      more", ["│ code", "│   more"]),
        ("|a|b|\n|-|-|\n|1|", ["a │ b", "──┼──", "1 │"]),
        ("", []),
    ],
)
def test_markdown(source: str, expected: list[str]) -> None:
    assert answer(source) == expected


def test_a_table_shrinks_to_the_width() -> None:
    table = "|name|note|\n|-|-|\n|Ada|wrote the first program for a machine|\n"
    assert answer(table, width=30) == [
        "name │ note",
        "─────┼──────────────────────",
        "Ada  │ wrote the first",
        "     │ program for a machine",
    ]


def test_the_marks_of_a_table_say_where_its_columns_stand() -> None:
    table = "|left|right|middle|last|\n|:-|-:|:-:|-:|\n|a|b|c|d|\n|1234567|1234567|1234567|123|"
    lines = answer(table, width=60)
    assert lines[0] == "left    │   right │ middle  │ last"
    assert lines[2] == "a       │       b │    c    │    d"


def test_a_table_with_too_many_columns_becomes_a_list_of_its_rows() -> None:
    table = "|" + "column|" * 9 + "\n|" + "-|" * 9 + "\n|" + "value|" * 9
    assert answer(table, width=30)[0] == "column: value"


def test_code_keeps_its_indentation_and_marks_where_it_goes_on() -> None:
    lines = answer("```python\nif x:\n\treturn 'a long line that does not fit here'\n```", width=30)
    assert lines == ["│ if x:", "│     return 'a long line th", "↪ at does not fit here'"]


def test_code_can_be_copied_alone_and_wrapped_lines_joined() -> None:
    code = "if x:\n\treturn 'a long line that does not fit'"
    drawing = drawn(Text(text=f"a\n\n```python\n{code}\n```\n\nb"), width=30)
    (fence,) = drawing.fences
    assert (fence.code, fence.language) == (code, "python")
    shown = range(fence.start, fence.end)
    assert [drawing.margins[line] for line in shown] == [4, 4, 4]
    assert [drawing.joints[line] for line in shown] == [None, None, ""]


def test_words_are_joined_again_by_blanks() -> None:
    drawing = drawn(Text(text="some words that need two lines"), width=20)
    assert drawing.joints[1:3] == (None, " ")


def test_code_has_colours() -> None:
    drawing = drawn(Text(text="```py\ndef f(): return 'x'\n```"))
    styles = {segment.text: segment.style for segment in drawing.strips[1]}
    assert styles["def"] == look(74)[Role.KEYWORD]
    assert styles["'x'"] == look(74)[Role.STRING]


def test_a_prompt_stays_as_it_was_typed() -> None:
    text = "fix __init__ in *args\n    # indented\n- item\n<b>"
    assert [line[2:] for line in body(prompt(text))] == text.split("\n")


def test_a_fence_in_a_prompt_is_code() -> None:
    drawing = prompt("see\n```py\nx = 1\n```\nthanks")
    assert body(drawing) == ["▌ see", "▌ │ x = 1", "▌ thanks"]
    assert drawing.fences[0].code == "x = 1"


def test_without_colours_inline_code_keeps_its_ticks() -> None:
    grey = replace(plain_look(40, now=NOW), colors=False)
    assert draw_message(said(Text(text="a `b`")), grey).strips[1].text == "▌ a `b`"


def test_text_that_is_nested_too_deep_is_shown_as_it_was_written() -> None:
    text = ">" * 500 + " deep"
    assert "".join(answer(text)).replace(" ", "") == ">" * 500 + "deep"


def test_a_long_text_folds_to_its_beginning() -> None:
    text = "\n\n".join(f"paragraph {number}" for number in range(20))
    folded = drawn(Text(text=text), folded=True)
    assert body(folded)[-1] == "▌ +36 lines"
    assert folded.parts[1].foldable
    assert not drawn(Text(text="short"), folded=True).parts[1].foldable


def test_a_very_long_text_says_where_markdown_ends() -> None:
    text = "\n\n".join(f"**paragraph** {number}" for number in range(5_000))
    lines = answer(text)
    assert lines[0] == "paragraph 0"
    assert any(line.startswith("… too long for Markdown") for line in lines)
    assert lines[-1] == "**paragraph** 4999"


# --- wrapping ----------------------------------------------------------------------------------


def pieces(text: str) -> tuple[Piece, ...]:
    return (Piece(Clean(text), look(80)[Role.TEXT]),)


@each_row(
    ("text", "width", "expected"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("  indented text", 10, ["  indented", "text"]),
        ("averylongword x", 5, ["avery", "longw", "ord x"]),
        ("漢字かな交じり文。次", 8, ["漢字かな", "交じり", "文。次"]),
        ("a 👩‍👩‍👧‍👦b", 3, ["a", "👩‍👩‍👧‍👦b"]),
        ("e\u0301" * 4, 2, ["e\u0301e\u0301"] * 2),
        ("trailing   ", 20, ["trailing"]),
        ("", 5, [""]),
    ],
)
def test_wrapping_between_words(text: str, width: int, expected: list[str]) -> None:
    assert [plain(line.pieces) for line in wrap(pieces(text), width)] == expected


def test_cutting_anywhere_keeps_every_character() -> None:
    assert [plain(line.pieces) for line in wrap_anywhere(pieces("ab cd漢字"), 3)] == [
        "ab",
        "cd",
        "漢",
        "字",
    ]


def test_fitting_marks_what_is_cut() -> None:
    mark = Clean("…")
    assert plain(fit(pieces("abcdef"), 4, mark)) == "abc…"
    assert plain(fit(pieces("漢字漢字"), 4, mark)) == "漢…"
    assert plain(fit(pieces("abc"), 3, mark)) == "abc"
    assert fit_end(Clean("a/b/c.py"), 5, mark) == "…c.py"
