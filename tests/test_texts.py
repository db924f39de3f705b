"""The list of all texts that a person can meet."""

from __future__ import annotations

from tests.texts import LIST, listed, texts


def test_the_list_of_texts_is_up_to_date() -> None:
    """`python -m tests.texts` writes it; read the difference aloud."""
    assert LIST.read_text("utf-8") == listed()


def test_prose_is_found_and_docstrings_are_left_out() -> None:
    source = '"""Not this one."""\nsay(f"Deleted {count} of them", "key", "No matches here.")\n'
    assert list(texts(source)) == ["Deleted {…} of them", "No matches here."]
