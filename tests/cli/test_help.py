"""The manual offline, and the scripts with which shells complete."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Gemtui, start
from tests.tools.documents import ASSETS


def test_the_manual_lists_its_pages_and_names_them_where_it_refers_to_them(gemtui: Gemtui) -> None:
    pages = {path.stem for path in ASSETS.glob("*.md")}
    listed = gemtui.ok("help").out
    assert {line.split()[0] for line in listed.splitlines()} == pages
    for page in pages:
        shown = gemtui.ok("help", page).out
        assert shown.startswith("# ")
        assert not re.search(r"\.md\)|<!--|^!\[", shown, re.MULTILINE)
        assert set(re.findall(r"\(gemtui help ([\w-]+)\)", shown)) <= pages


def test_an_unknown_page_is_refused_with_what_to_use(gemtui: Gemtui) -> None:
    gemtui("help runz").refuses("the manual has no page 'runz': gemtui help lists the pages")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_gets_a_script_that_asks_gemtui(shell: str, gemtui: Gemtui) -> None:
    script = gemtui.ok("completion", shell).out
    assert f"{shell}_complete" in script
    assert "_GEMTUI_COMPLETE" in script


def test_powershell_is_given_values_with_their_meaning() -> None:
    environ = {"_GEMTUI_COMPLETE": "powershell_complete", "COMP_WORDS": "policy", "COMP_WORD": "wo"}
    completed = start(environ=environ)
    assert completed.stdout == b"words\tTurn sentences into rules.\n"
