"""What happens to a policy while it is edited: other edits, a save, somebody else's write."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gemtui.errors import PolicyError
from gemtui.policy.edit import store
from gemtui.policy.edit.document import Document
from gemtui.policy.model.rules import Decision, Rule
from gemtui.ui.policy import edits
from gemtui.ui.policy.editor import PolicyEditor
from gemtui.ui.policy.files import policy_context
from gemtui.ui.rules.draft import Draft


def rule(tool: str, priority: int = 1) -> Rule:
    return Rule(tools=(tool,), decision=Decision.ALLOW, priority=priority)


def document(*tools: str) -> Document:
    return edits.add_all(Document.parse(""), [rule(tool) for tool in tools]).document


def tools(shown: Document) -> list[str]:
    return [entry.rule.tools[0] for entry in shown.rules if entry.rule is not None]


class Person:
    """What the editor needs of the app: somebody to tell."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def say(self, text: str, *, problem: bool = False) -> None:
        self.told.append(text)


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def editor(person: Person, tmp_path: Path) -> PolicyEditor:
    app: Any = person
    found = PolicyEditor(app, tmp_path, changed=lambda: None)
    found.draft.change(document(*(f"tool_{number}" for number in range(200))), "begin")
    return found


def test_edits_of_a_large_policy_come_one_after_the_other(editor: PolicyEditor) -> None:
    seen = editor.draft.document
    for number in (3, 150):
        editor.edit(partial(edits.remove, place=number))
        editor.edit(edits.filled_in(seen, 100, rule("changed")))
        editor.edit(edits.filled_in(seen, None, rule("added")))
    left = tools(editor.draft.document)
    assert (left.count("changed"), left.count("added"), len(left)) == (1, 2, 200)
    assert {"tool_3", "tool_151", "tool_100"}.isdisjoint(left)
    for _ in range(5):
        editor.draft.undo()
    assert editor.draft.document.text == seen.text


def test_what_is_undone_meanwhile_stays_undone(editor: PolicyEditor) -> None:
    editor.edit(lambda now: edits.add(now, rule("added")))
    change = edits.filled_in(editor.draft.document, 3, rule("changed"))
    editor.draft.undo()
    editor.edit(change)
    left = tools(editor.draft.document)
    assert ("added" in left, "changed" in left) == (False, True)


def test_a_form_never_writes_over_another_rule(editor: PolicyEditor, person: Person) -> None:
    seen = document("glob", "write_file", "web_fetch")
    editor.draft = Draft()
    editor.draft.change(document("web_fetch", "glob"), "somebody else wrote it")
    editor.edit(edits.filled_in(seen, 2, rule("google_web_search")))
    assert tools(editor.draft.document) == ["google_web_search", "glob"]
    assert editor.edit(edits.filled_in(seen, 1, rule("replace"))) is None
    assert tools(editor.draft.document) == ["google_web_search", "glob"]
    assert person.told == ["That rule is no longer as it was: look, then do it again."]


def test_a_change_is_made_where_its_rule_stands_now() -> None:
    seen = document("glob", "write_file")
    change = edits.filled_in(seen, 1, rule("replace"))
    made = change(document("read_file", "glob", "write_file"))
    assert made is not None
    assert tools(made.document) == ["read_file", "glob", "replace"]
    with pytest.raises(PolicyError, match="no longer as it was"):
        change(document("glob"))


def test_what_is_edited_while_it_is_saved_is_kept(own_places: None) -> None:
    draft = Draft(store.create("work", document("glob").text))
    draft.change(document("glob", "read_file"), "add 1 rule")
    assert draft.opened is not None
    saved = store.save(draft.opened, draft.document)
    draft.change(document("glob", "read_file", "replace"), "add 1 rule")
    draft.wrote(saved)
    assert (tools(draft.document), draft.changed) == (["glob", "read_file", "replace"], True)
    draft.undo()
    assert (tools(draft.document), draft.changed) == (["glob", "read_file"], False)


def test_links_in_the_users_folder_take_no_part(home: Path, tmp_path: Path) -> None:
    folder = home / ".gemini/policies"
    folder.mkdir()
    (tmp_path / "elsewhere.toml").write_text(document("glob").text)
    (folder / "a.toml").symlink_to(tmp_path / "elsewhere.toml")
    (folder / "b.toml").write_text(document("replace").text)
    found = policy_context(store.open_policy(folder / "b.toml"), tmp_path)
    assert [each for each in found.before.rules + found.after.rules if "glob" in each.tools] == []
