"""What happens to a policy while it is edited: other edits, a save, somebody else's write."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from gemtui.agent.command import Command, Machine, command_of
from gemtui.agent.detect import NEWEST
from gemtui.errors import PolicyError
from gemtui.policy.edit import store
from gemtui.policy.edit.document import Document
from gemtui.policy.file.rule_codec import rule_text
from gemtui.policy.model.rules import Decision, Rule
from gemtui.ui.kit.app_base import Reporting
from gemtui.ui.policy import editor as editor_module
from gemtui.ui.policy import edits, files
from gemtui.ui.policy.editor import PolicyEditor, command_preview
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

    def show_message(self, text: str, *, problem: bool = False) -> None:
        self.told.append(text)

    def reporting(self, failed: str = "") -> Reporting:
        return Reporting(self.show_message, failed)


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def editor(person: Person, tmp_path: Path) -> PolicyEditor:
    app: Any = person
    found = PolicyEditor(app, tmp_path, changed=lambda: None)
    found.draft.change(document(*(f"tool_{number}" for number in range(200))), "begin")
    return found


async def test_edits_of_a_large_policy_come_one_after_the_other(editor: PolicyEditor) -> None:
    seen = editor.draft.document
    for number in (3, 150):
        await editor.edit(partial(edits.remove_rule, place=number))
        await editor.edit(edits.edit_from_form(seen, 100, rule("changed")))
        await editor.edit(edits.edit_from_form(seen, None, rule("added")))
    left = tools(editor.draft.document)
    assert (left.count("changed"), left.count("added"), len(left)) == (1, 2, 200)
    assert {"tool_3", "tool_151", "tool_100"}.isdisjoint(left)
    for _ in range(5):
        editor.draft.undo()
    assert editor.draft.document.text == seen.text


async def test_what_is_undone_meanwhile_stays_undone(editor: PolicyEditor) -> None:
    await editor.edit(lambda now: edits.add(now, rule("added")))
    change = edits.edit_from_form(editor.draft.document, 3, rule("changed"))
    editor.draft.undo()
    await editor.edit(change)
    left = tools(editor.draft.document)
    assert ("added" in left, "changed" in left) == (False, True)


async def test_a_form_never_writes_over_another_rule(editor: PolicyEditor, person: Person) -> None:
    seen = document("glob", "write_file", "web_fetch")
    editor.draft = Draft()
    editor.draft.change(document("web_fetch", "glob"), "somebody else wrote it")
    await editor.edit(edits.edit_from_form(seen, 2, rule("google_web_search")))
    assert tools(editor.draft.document) == ["google_web_search", "glob"]
    assert await editor.edit(edits.edit_from_form(seen, 1, rule("replace"))) is None
    assert tools(editor.draft.document) == ["google_web_search", "glob"]
    assert person.told == ["That rule has changed in the meantime. Check it, then try again."]


async def test_the_checks_of_a_large_policy_leave_the_event_loop_alone(
    editor: PolicyEditor,
) -> None:
    much = "\n".join(rule_text(rule(f"mcp_s_{number}")) for number in range(2000))
    editor.draft.change(Document.parse(much), "much")
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    began = process_time()
    made = await editor.edit(lambda now: edits.add(now, rule("added")))
    edited = process_time()
    turning.cancel()
    assert made is not None
    assert turns > 10
    assert len(made.document.problems) == 2001
    assert process_time() - edited < (edited - began) / 10


async def test_an_edit_by_place_is_dropped_where_another_one_was_quicker(
    editor: PolicyEditor, person: Person
) -> None:
    seen = editor.draft.document
    remove = edits.edit_by_index(seen, partial(edits.remove_rule, place=3))
    add = editor.edit(lambda now: edits.add(now, rule("added")))
    made, removed = await asyncio.gather(add, editor.edit(remove))
    assert made is not None
    dropped = removed is None
    said = ["That rule has changed in the meantime. Check it, then try again."]
    assert person.told == (said if dropped else [])
    assert len(editor.draft.document.rules) == (201 if dropped else 200)


async def test_an_edit_while_the_first_policy_is_read_stays(person: Person, tmp_path: Path) -> None:
    app: Any = person
    editor = PolicyEditor(app, tmp_path, changed=lambda: None)
    file = tmp_path / "p.toml"
    file.write_text(rule_text(rule("glob")))
    opening = asyncio.create_task(editor.open(file))
    await asyncio.sleep(0)
    editor.draft.change(document("web_fetch"), "typed meanwhile")
    await opening
    assert tools(editor.draft.document) == ["web_fetch"]
    assert editor.draft.opened is None


def test_a_change_is_made_where_its_rule_stands_now() -> None:
    seen = document("glob", "write_file")
    change = edits.edit_from_form(seen, 1, rule("replace"))
    made = change(document("read_file", "glob", "write_file"))
    assert made is not None
    assert tools(made.document) == ["read_file", "glob", "replace"]
    with pytest.raises(PolicyError, match="has changed in the meantime"):
        change(document("glob"))


def test_what_is_edited_while_it_is_saved_is_kept(own_places: None) -> None:
    draft = Draft(store.create("work", document("glob").text))
    draft.change(document("glob", "read_file"), "add 1 rule")
    assert draft.opened is not None
    saved = store.save_policy(draft.opened, draft.document)
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


def test_the_command_of_a_policy_that_is_deleted_meanwhile_names_the_missing_file(
    own_places: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = Draft(store.create("work", document("glob").text))
    assert draft.opened is not None
    path = draft.opened.file.path

    def deleting(*args: Any, **options: Any) -> Command:
        command = command_of(*args, **options)
        if options["session_id"] is None:
            path.unlink()
        return command

    monkeypatch.setattr(editor_module, "command_of", deleting)
    machine = Machine(cli=Path("gemini"), capabilities=NEWEST, environ={})
    preview = command_preview(draft, machine, "gemini", runs=tmp_path, cwd=tmp_path)
    assert f"{path}: it does not exist" in preview.problem


async def test_policies_that_cant_be_listed_are_told_and_the_pane_begins(
    editor: PolicyEditor, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/home/policies")

    async def nothing() -> None:
        pass

    monkeypatch.setattr(files, "relevant_policies", refusing)
    monkeypatch.setattr(editor, "load_context", nothing)
    await editor.begin()
    assert editor.begun.is_set()
    assert person.told == ["/home/policies: Permission denied"]
