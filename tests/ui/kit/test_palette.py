"""The palette and the help know the words of people who come from other programs."""

from __future__ import annotations

import pytest

from gemtui.ui.kit.command_screen import NotHere, matching, offers
from gemtui.ui.kit.keys import KEYS, Key, Where
from tests.rows import each_row

RUN = [key for key in KEYS if key.where in (Where.APP, Where.RUN, Where.PROMPT)]
LIST = [key for key in KEYS if key.where in (Where.SESSIONS, Where.LIST, Where.APP)]
NATURAL = {
    "app.back": "exit",
    "app.change_theme": "theme color dark light",
    "app.doctor": "version update doctor about",
    "app.extension": "mcp",
    "app.help": "help keys bindings shortcuts",
    "app.lost_sessions": "recover",
    "app.policies": "permissions allow deny yolo policy rules tools",
    "app.quit": "exit quit",
    "app.runs": "run prompt stop cancel abort model",
    "app.settings": "settings editor mouse wrap",
    "app.suspend_process": "shell",
    "app.worktrees": "worktree branch",
    "list.copy_id": "copy copy_id",
    "list.copy_resume": "resume",
    "list.days": "today yesterday week date calendar",
    "list.filter": "filter failed errors",
    "list.fold": "expand",
    "list.group": "group",
    "list.hidden": "agent",
    "list.open": "open",
    "list.projects": "project folder cd",
    "list.sort": "sort",
    "run.from_file": "image",
    "sessions.archive": "archive",
    "sessions.delete": "delete trash",
    "sessions.export": "share export markdown raw json",
    "sessions.files": "files changes history",
    "sessions.fork": "branch rewind",
    "sessions.go_on": "resume",
    "sessions.info": "subagent path about",
    "sessions.marks": "rename tag note edit",
    "sessions.patch": "diff",
    "sessions.pin": "pin favorite",
    "sessions.redo": "redo",
    "sessions.refresh": "refresh reload update",
    "sessions.restore": "restore recover",
    "sessions.review": "diff changes commit revert",
    "sessions.search": "find grep",
    "sessions.stats": "usage cost tokens stats price money budget",
    "sessions.undo": "undo",
    "sessions.undo_to": "checkpoint revert rewind",
    "transcript.fold_all": "thoughts",
    "transcript.next_failure": "next_error",
    "transcript.open_file": "image",
    "transcript.raw": "raw",
}
"""What people typed in the list of sessions, by the command that they meant."""
ELSEWHERE = {
    "app.doctor": "upgrade status bug check_for_update debug",
    "app.extension": "hooks plugins install extension",
    "app.help": "menu keybindings hotkeys docs options",
    "app.policies": "approve reject always_allow",
    "app.runs": "interrupt tasks plan execute",
    "app.settings": "config config_file preferences vim",
    "app.suspend_process": "background terminal bash",
    "app.trusted": "trust",
    "app.worktrees": "checkout worktrees merge",
    "app.change_theme": "themes color_scheme appearance",
    "list.clear": "reset clear",
    "list.copy_resume": "copy_command resume_command yank",
    "list.days": "month time jump_to_date",
    "list.filter": "search filter_mode failed_command models directory",
    "list.first": "top",
    "list.fold": "collapse",
    "list.group": "tree",
    "list.hidden": "hidden empty archived subagents",
    "list.last": "bottom",
    "list.projects": "workspace switch_project repository recent_repos namespace proj",
    "list.scope": "global directory all_projects",
    "list.select": "multi_select select_all",
    "list.select_to": "range",
    "list.sort": "sort_order newest duration",
    "run.again": "retry",
    "run.from_file": "attach",
    "run.queue": "queue",
    "sessions.delete": "remove delete_session discard",
    "sessions.export": "download export_html print save",
    "sessions.files": "modified file_history",
    "sessions.fork": "fork clone",
    "sessions.go_on": "continue reopen",
    "sessions.info": "inspector context details session_info agents child timestamps",
    "sessions.marks": "title label rename_session add_note tag_session",
    "sessions.new_run": "new chat init",
    "sessions.other_pane": "panel focus",
    "sessions.patch": "patch apply",
    "sessions.pin": "bookmark star unpin",
    "sessions.restore": "restore_session undelete",
    "sessions.review": "stage hunk compare review commit_message",
    "sessions.stats": "billing quota spent statistics",
    "sessions.undo_to": "rollback",
    "sessions.vault": "backup retention",
    "sessions.waiting": "notification waiting",
    "sessions.zoom": "fullscreen sidebar screen_mode",
    "transcript.copy_block": "code",
    "transcript.fold": "output",
    "transcript.fold_all": "thinking expand_all",
    "transcript.history": "blame log",
    "transcript.next_prompt": "next_message",
    "transcript.open_file": "open_in_editor",
    "transcript.previous_failure": "previous_error",
    "transcript.prompts": "timeline outline",
}
"""Words from the help of lazygit, Claude Code, opencode and atuin, by what does it here."""


def pairs(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(word.replace("_", " "), id) for id, words in table.items() for word in words.split()]


@each_row("typed, id", [*pairs(NATURAL), *pairs(ELSEWHERE)])
def test_a_natural_word_leads_to_its_command_among_the_first_three(typed: str, id: str) -> None:
    keys = [row.key if isinstance(row, NotHere) else row for row in offers(typed, LIST)[:3]]
    assert id in [key.id for key in keys if isinstance(key, Key)]


@each_row("typed", ["ask me", "approve", "deny"])
def test_in_the_run_pane_the_words_for_approval_lead_to_the_mode(typed: str) -> None:
    assert "prompt.mode" in [key.id for key in offers(typed, RUN)[:3] if isinstance(key, Key)]


@each_row(
    "typed, first",
    [
        ("resume", "sessions.go_on"),
        ("month", "sessions.stats"),
        ("claude", "list.filter"),
        ("worktree", "run.worktree"),
        ("worktrees", "app.worktrees"),
        ("trusted", "app.trusted"),
        ("hsitory", "transcript.history"),
        ("wroktrees", "app.worktrees"),
        ("chose theem", "app.change_theme"),
        ("lost sess", "app.lost_sessions"),
        ("extention", "app.extension"),
        ("xq", None),
        ("zebra", None),
        ("no such thing", None),
    ],
)
def test_the_palette_finds_a_command_by_its_words_and_with_typos(
    typed: str, first: str | None
) -> None:
    ranked = matching(typed, KEYS)
    assert (ranked[0].id if ranked else None) == first


def test_commands_of_other_screens_come_last_and_say_where_they_work() -> None:
    rows = offers("thoughts", LIST)
    assert {row.key.where for row in rows if isinstance(row, NotHere)} == {Where.TRANSCRIPT}
    assert isinstance(offers("delete", LIST)[0], Key)


@pytest.mark.parametrize("typed", ["export", "undo", "policy"])
def test_a_commands_own_name_comes_before_other_commands_synonyms(typed: str) -> None:
    assert matching(typed, LIST)[0].label.lower() == typed
