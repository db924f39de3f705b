from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gemtui.text import Clean, clean, clean_line
from gemtui.transcript.export_markdown import code, escaped, paragraph
from gemtui.transcript.untrusted_markdown import (
    BRACKETS,
    LONGEST,
    defused,
    fenced,
    highlighted,
    rendered,
)
from tests.rows import each_row, table

TABLES = table("transcript/markdown.json")

markdown = st.lists(st.sampled_from(TABLES["pieces"]) | st.text(max_size=4)).map("".join).map(clean)

commonmark = MarkdownIt("commonmark").enable("table")
commonmark.validateLink = lambda url: True  # type: ignore[method-assign]


def html(markdown: str) -> str:
    return str(commonmark.render(markdown))


@given(markdown)
@example(Clean("> > > > > > > > > > > > > > > > > > > > > > > <b>"))
@example(Clean("a\n> ```\nb <b>"))
@example(Clean("```\n    "))
@example(Clean("- a\n\n      <b>\n  <b>"))
def test_no_markdown_escapes_its_place_in_a_document(text: Clean) -> None:
    page = html(f"# ours\n\n{defused(text)}\n\n## ours\n")
    assert page.startswith("<h1>ours</h1>\n")
    assert page.endswith("<h2>ours</h2>\n")
    assert len(re.findall("<h[12]", page)) == 2
    assert not re.search(r"<(script|b|img)\b|<!|href=\"(javascript|data):", page)


@each_row("text, safe", TABLES["defused"])
def test_defused(text: str, safe: str) -> None:
    assert defused(clean(text)) == safe


def test_very_long_markdown_is_shown_as_source() -> None:
    text = clean("`" + "a``b" * LONGEST)
    assert defused(text) == fenced(text, "markdown")
    assert rendered(text) == f"<pre>{text}</pre>\n"


@each_row("unit", ["[", "![", "[a]["])
def test_thousands_of_brackets_are_shown_as_source(unit: str) -> None:
    text = clean(unit * (BRACKETS + 1))
    assert defused(text) == fenced(text, "markdown")
    assert rendered(text) == f"<pre>{text}</pre>\n"


def test_a_thousand_links_are_links() -> None:
    text = clean("[a](b) " * BRACKETS)
    assert defused(text) == text.rstrip()
    assert rendered(text).count("<a ") == BRACKETS


@given(st.text().map(clean))
def test_a_paragraph_is_only_text(text: Clean) -> None:
    shown = html(paragraph(text))
    assert not re.search(r"<(?!/?p>|br />)", shown)
    assert re.sub(r"\s+", "", _plain(shown)) == re.sub(r"\s+", "", text)


@given(markdown)
def test_escaped_text_in_a_line_is_only_text(text: Clean) -> None:
    line = clean_line(text)
    shown = html(f"- x: {escaped(line)}")
    assert _plain(shown.replace("<ul>\n<li>", "").replace("</li>\n</ul>\n", "")) == (
        f"x: {line}".rstrip()
    )


@given(st.text(alphabet=st.sampled_from("`a <\\*|"), min_size=1).map(clean))
def test_a_code_span_holds_any_line(text: Clean) -> None:
    if text.strip():
        assert html(code(text)) == f"<p><code>{_escaped_html(text)}</code></p>\n"


@given(st.text(alphabet=st.sampled_from("`~a\n <")).map(clean))
def test_a_fence_holds_any_text(text: Clean) -> None:
    page = html(f"{fenced(text)}\n\n# ours\n")
    assert page.startswith("<pre><code>")
    assert page.endswith("</code></pre>\n<h1>ours</h1>\n")


@given(markdown)
def test_rendered_html_has_no_foreign_element(text: Clean) -> None:
    page = rendered(text)
    assert not re.search(r"<(script|b|img|h1|h2)\b|<!", page)
    assert not re.search(r"href=\"(javascript|data|vbscript|file):", page)
    assert set(re.findall(r" ([a-z-]+)=", re.sub(r">[^<]*<", "><", page))) <= {
        "href",
        "rel",
        "class",
        "start",
        "style",
    }


def test_rendered() -> None:
    text = clean("# Title\n\n![secret](https://e/?q=1) <i>x</i> [link](https://e/)")
    assert rendered(text) == (
        "<h3>Title</h3>\n<p>[image secret https://e/?q=1] &lt;i&gt;x&lt;/i&gt; "
        '<a href="https://e/" rel="noopener noreferrer">link</a></p>\n'
    )


def test_code_is_highlighted_where_that_is_cheap() -> None:
    assert highlighted("def f(): 1", "python") == (
        '<span class="k">def</span> <span class="n">f</span>(): <span class="m">1</span>'
    )
    assert highlighted("<x>", "no such language") == "&lt;x&gt;"
    assert highlighted("<x>", "") == "&lt;x&gt;"
    assert highlighted("x = 1\n" * 10_000, "python") == "x = 1\n" * 10_000


def _plain(shown: str) -> str:
    text = re.sub(r"</?p>|<br />", "", shown)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        text = text.replace(entity, sign)
    return text


def _escaped_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
