"""The policy pane at the keys."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tomllib
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual import events
from textual.widgets import Input, Select

from gemtui.config import Config
from gemtui.paths import runs_dir
from gemtui.policy.file.policy_files import policies_dir
from gemtui.policy.model.rules import ApprovalMode, Call, Decision
from gemtui.ui.kit.clean_widgets import Tick
from gemtui.ui.kit.messages import AllowCallRequested
from gemtui.ui.policy.main_pane import PolicyMain
from gemtui.ui.rules import form as rule_form
from gemtui.ui.rules.draft import Draft
from gemtui.ui.run.prompt import PromptArea
from gemtui.ui.run.screen import RunScreen
from tests.fake_cli import INIT, OK, FakeCli
from tests.patience import PATIENCE
from tests.sessions import logs, stores
from tests.ui.people import BOTH, NARROW, WIDE, person
from tests.ui.planners import WORK, planner, policy

BARS = str.maketrans("", "", "▁▂▃▄▅▆▇█")
"""Scroll bars are drawn plainly by the program, not by its tests."""
FIRST = """\
[[rule]]
toolName = "glob"
decision = "allow"
priority = 7
"""


def rules(path: Path) -> list[dict[str, object]]:
    """What stands in a file."""
    found: list[dict[str, object]] = tomllib.loads(path.read_text())["rule"]
    return found


# --- what is shown -------------------------------------------------------------------------------


async def test_somebody_without_a_policy_learns_how_to_begin_and_levels_become_rules(
    home: Path,
) -> None:
    async with planner(home, BOTH) as me:
        await me.sees("No policy yet.", "A policy says which tools")
        await me.sees("s   Suggest rules that past calls would have needed", "l   Switch between")
        await me.sees("a add", "^s save", "s suggest")
        assert "enter edit" not in me.text

        await me.does("l", "Write files", "(●) unset")
        await me.press("left", "left", "left")
        await me.until(lambda: len(me.draft.entries) == 2)
        await me.press("down", "left")
        await me.until(lambda: len(me.draft.entries) == 3)
        await me.does("l", "⊘ deny", "run_shell_command", "✓ allow", "headless only")
        await me.press("u", "u", "u", "u")
        assert me.draft.document.text == ""


async def test_while_policies_are_read_nobody_is_told_that_there_are_none(home: Path) -> None:
    policy("work")
    seen: list[str] = []
    async with person(home, WIDE) as me:

        def read() -> bool:
            seen.append(me.text)
            return "4 rules" in me.text

        await me.press("3")
        await me.until(read)
    assert not any("No policy yet" in each or "0 rules" in each for each in seen)


async def test_what_it_becomes_is_the_command_of_a_run(home: Path, fake_cli: FakeCli) -> None:
    path, cli = policy("work"), fake_cli()
    async with planner(home, NARROW) as me:
        await me.does("v", "--output-format=stream-json", f"--policy={path}"[:40])
        await me.does("m", "--approval-mode=auto_edit")
        await me.press("escape", "y")
        assert f"{cli} --output-format=stream-json --approval-mode=auto_edit" in me.app.clipboard


async def test_a_narrow_pane_searches_and_shows_file_tools_and_levels_over_the_rules(
    home: Path,
) -> None:
    policy("work")
    async with planner(home, NARROW) as me:
        await me.press("slash")
        await me.type("allow write")
        await me.until(lambda: me.tools == ["write_file"])
        await me.does("down", "1 of 4 rules")
        await me.press("escape")
        await me.until(lambda: len(me.tools) == 4)

        await me.does("v", "work.toml", "# what I do all day", "Findings")
        await me.sees("no Gemini CLI is installed: these options are for version")
        await me.does("escape", "4 rules")

        await me.does("l", "levels and lists", "esc back")
        await me.does("down down down right", "(●) auto_edit")
        assert me.draft.mode is ApprovalMode.AUTO_EDIT
        assert not me.draft.changed
        await me.does("escape", "highest priority wins")
        assert me.app.focused is me.pane.main.rules

        await me.does("p", "headless", "interactive", "run_shell_command")
        await me.press("escape", "d")
        assert len(me.tools) == 3


async def test_what_is_copied_runs_where_it_is_pasted(
    home: Path, fake_cli: FakeCli, tmp_path: Path
) -> None:
    """With the settings that a CLI before 0.60 reads."""
    path, cli = policy("work"), fake_cli(f"print:{OK}")
    cli.write_text(cli.read_text().replace("0.61.0", "0.59.0"))
    async with planner(home) as me:
        await me.press("y")
        copied = me.app.clipboard
    (home / "project/prompt.txt").write_text("go")
    subprocess.run(["bash", "-c", copied], stdout=subprocess.DEVNULL, check=True, timeout=PATIENCE)
    words = (tmp_path / "words").read_text().splitlines()
    assert f"--policy={path}" in words
    (settings,) = runs_dir().glob("*/settings.json")
    assert json.loads(settings.read_text())["general"]["defaultApprovalMode"] == "default"
    assert f"GEMINI_CLI_SYSTEM_SETTINGS_PATH={settings} " in copied


async def test_ascii_has_a_sign_and_a_word_for_everything(home: Path) -> None:
    policy("work")
    async with planner(home, WIDE, Config(ascii=True)) as me:
        await me.does("space", ". deny", "+ allow")
        assert me.text.translate(BARS).isascii(), me.text
        await me.does("l", "( ) allow")
        assert me.text.translate(BARS).isascii(), me.text
        await me.press("l", "enter")
        await me.form()
        assert me.text.translate(BARS).isascii(), me.text


# --- changing rules ------------------------------------------------------------------------------


async def test_a_rule_is_added_in_a_form_and_saved(home: Path) -> None:
    path = policy("work", FIRST)
    async with planner(home, BOTH) as me:
        await me.press("a")
        await me.fill(tools="run_shell_command", command_prefixes="git status")
        await me.press("ctrl+s")
        await me.until(lambda: len(me.draft.entries) == 2)
        await me.sees("3 Policy *", "1 unsaved change")
        assert len(rules(path)) == 1
        await me.press("ctrl+s")
        await me.until(lambda: len(rules(path)) == 2)
        assert rules(path)[1] == {
            "toolName": "run_shell_command",
            "commandPrefix": "git status",
            "decision": "allow",
            "priority": 100,
        }
        await me.sees("[3 Policy] ")


async def test_rules_are_moved_deleted_doubled_switched_off_and_all_of_it_taken_back(
    home: Path,
) -> None:
    path = policy("work")
    before = path.stat().st_mtime_ns
    async with planner(home, BOTH) as me:
        await me.sees("work", "4 rules", "300  ⊘ deny", "200  ✓ allow", 'prefix "pytest"')
        assert me.tools == ["run_shell_command", "run_shell_command", "write_file", "read_file"]
        await me.does("ctrl+s", "Nothing to save")
        assert path.stat().st_mtime_ns == before

        await me.press("K", "end", "J")
        await me.settled()
        assert not me.draft.changed
        await me.press("home", "down", "down", "K")
        await me.is_told("Priority changed to 200")
        assert me.tools == ["run_shell_command", "write_file", "run_shell_command", "read_file"]
        assert me.pane.main.rules.cursor == 1
        await me.press("J")
        await me.until(lambda: me.pane.main.rules.cursor == 2)
        assert me.tools == ["run_shell_command", "run_shell_command", "write_file", "read_file"]
        await me.press("u", "u", "home")

        await me.press("d")
        assert me.tools == ["run_shell_command", "write_file", "read_file"]
        await me.press("down", "c")
        assert me.tools == ["run_shell_command", "write_file", "write_file", "read_file"]
        await me.does("space", "◌ allow", "off")
        assert [entry.enabled for entry in me.draft.entries].count(False) == 1
        await me.press("u", "u", "u")
        assert me.draft.document.text == WORK
        assert not me.draft.changed
        await me.press("U")
        assert me.tools == ["run_shell_command", "write_file", "read_file"]
        assert me.said[-1] == "Redone: delete rule 1"
        await me.press("u")

        await me.does("end d", "1 unsaved change")
        await me.until(lambda: "−[[rule]]" in me.text)  # it is wide again
        await me.press("u", "home")
        await me.pilot.press("d", "d", "d")
        await me.pilot.pause()
        assert me.tools == ["read_file"]


async def test_the_form_says_what_is_wrong_and_takes_choices_by_keys(home: Path) -> None:
    policy("work", FIRST)
    async with planner(home) as me:
        await me.press("enter")
        form = await me.form()
        await me.fill(priority="1000")
        await me.sees("Priority: enter a whole number from 0 to 999")
        await me.press("ctrl+s")
        assert me.app.screen is form
        await me.fill(priority="9", args_pattern="(")
        await me.sees("✗ error")
        await me.press("ctrl+s")
        assert me.app.screen is form
        await me.press("escape")
        await me.until(lambda: me.app.screen is me.pane)
        assert not me.draft.changed

        await me.press("enter")
        await me.fill(args_pattern="")
        form = await me.form()
        form.query_one("#decision", Select).focus()
        await me.press("space", "down", "down", "enter")
        form.query_one("#plan").focus()
        await me.press("space")
        form.query_one("#interactive", Select).focus()
        await me.press("space", "down", "enter", "ctrl+s")
        await me.until(lambda: me.draft.changed)
        rule = me.draft.entries[0].rule
        assert rule is not None
        assert (rule.decision, rule.modes, rule.interactive) == (Decision.DENY, ("plan",), False)


async def test_the_form_completes_tools_reads_folders_and_asks_twice_before_all_is_allowed(
    home: Path,
) -> None:
    async with planner(home) as me:
        for answer in ("escape", "y"):
            if answer == "escape":
                await me.press("a")
            await me.form()
            await me.does("ctrl+s", "Allow every tool?")
            await me.press(answer)
        await me.until(lambda: len(me.draft.entries) == 1 and me.app.screen is me.pane)
        await me.press("u")
        await me.until(lambda: not me.draft.entries)
        await me.pilot.pause()
        assert me.app.focused is not None

        await me.press("a")
        form = await me.form()
        await me.type("run_sh")
        await me.until(lambda: form.query_one("#tools", Input)._suggestion)
        await me.does("right", "arguments: command")
        assert form.query_one("#tools", Input).value == "run_shell_command"
        await me.fill(tools="writefile")
        await me.sees("write_file?")

        await me.fill(tools="write_file, replace", folder="/etc")
        await me.sees("Files under: enter a folder of the project, such as src/")
        await me.fill(folder="src")
        await me.does("ctrl+s", "files below src/")
        (entry,) = me.draft.entries
        assert entry.rule is not None
        await me.press("enter")
        form = await me.form()
        assert form.query_one("#folder", Input).value == "src/"
        assert form.query_one("#args_pattern", Input).value == ""
        await me.press("ctrl+s")
        await me.until(lambda: me.app.screen is me.pane)
        assert me.draft.entries == (entry,)


async def test_a_late_check_of_earlier_values_hides_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy("work", FIRST)
    asked, checked, check = Event(), Event(), rule_form.review_rule

    def slowly(*values: Any) -> Any:
        if values[2].priority == 100:
            asked.set()
            checked.wait(PATIENCE)
        return check(*values)

    async with planner(home) as me:
        await me.press("enter")
        await me.form()
        monkeypatch.setattr(rule_form, "review_rule", slowly)
        await me.fill(priority="100")
        await asyncio.to_thread(asked.wait, PATIENCE)
        await me.does("'0", "Priority: enter a whole number from 0 to 999")
        checked.set()
        await me.until(lambda: not [each for each in me.app.workers if each.group == "check"])
        await me.sees("Priority: enter a whole number from 0 to 999")


async def test_a_mode_that_no_rule_has_is_mended_in_the_form_and_hostile_text_stays_harmless(
    home: Path,
) -> None:
    hostile = (
        'denyMessage = "\\u001b]52;c;aGk=\\u0007[/x] \\u202eevil"\nwhat = "[@click=app.quit]x"\n'
    )
    policy("work", FIRST + hostile + 'modes = ["auto_edit"]\n')
    async with planner(home) as me:
        await me.sees("✓ allow")
        assert not {"\x1b", "\x07", "\u202e"} & set(me.text)
        await me.press("enter")
        form = await me.form()
        assert not {"\x1b", "\x07", "\u202e"} & set(me.text)
        await me.sees('"auto_edit" is not a valid mode in a rule')
        form.query_one("#autoEdit", Tick).focus()
        await me.press("space")
        await me.press("ctrl+s")
        await me.until(lambda: me.draft.changed)
        (entry,) = me.draft.entries
        assert entry.rule is not None
        assert entry.rule.modes == ("autoEdit",)


async def test_files_that_are_wrong_as_a_whole_say_so_and_are_left_alone(home: Path) -> None:
    policy("a", FIRST.replace("[[rule]]", "[[rules]]"))
    path = policy("b", "[[rule]\nbroken")
    async with planner(home, NARROW) as me:
        await me.sees("✗ error: ", "rules")
        await me.does("f", "Your gemtui policies")
        await me.press("down", "enter")
        await me.until(lambda: me.draft.name == "b")
        await me.sees("✗", "o   Open the file in your editor")
        before = len(me.said)
        await me.press("a")
        await me.until(lambda: len(me.said) > before)
        assert me.app.screen is me.pane
        assert path.read_text() == "[[rule]\nbroken"


async def test_keys_in_one_burst_with_one_that_opens_something_change_no_rule(home: Path) -> None:
    policy("work")
    async with planner(home) as me:
        for opens in "tahsf":
            for key in (opens, *"dddlumc"):
                me.app.post_message(events.Key(key, key))
            await me.until(lambda: me.app.screen is not me.pane)
            while me.app.screen is not me.pane or me.pane.asking:  # the burst may answer, too
                await me.press("escape")
            assert len(me.draft.entries) == 4, opens
            assert not me.draft.changed, opens
            await me.sees("d delete")

        await me.press("tab")
        assert me.app.focused is not me.pane.main.rules
        for key in ("slash", *"ddd"):
            me.app.post_message(events.Key(key, "/" if key == "slash" else key))
        await me.until(lambda: isinstance(me.app.focused, Input))
        await me.settled()
        assert len(me.draft.entries) == 4


# --- levels --------------------------------------------------------------------------------------


async def test_a_list_of_tools_is_typed_and_read_back_and_a_first_policy_gets_a_name(
    home: Path,
) -> None:
    folder = home / ".gemini/policies"
    folder.mkdir()
    (folder / "mine.toml").write_text(FIRST)
    async with planner(home, NARROW) as me:
        await me.sees("No policy yet.", "Gemini CLI also loads 1 policy file")
        await me.press("l", "up")
        await me.press(*["down"] * 9, "enter")
        await me.sees("names separated by commas")
        await me.does(
            "'save_memory, space 'write_todos enter", "Never           save_memory, write_todos"
        )
        assert {entry.rule.decision for entry in me.draft.entries if entry.rule} == {Decision.DENY}
        await me.press("enter")
        await me.until(lambda: me.app.focused and me.app.focused.id == "names")
        await me.press("end", "shift+home", "delete", "enter")
        await me.until(lambda: not me.draft.entries)

        await me.press(*["up"] * 9, "left")
        await me.until(lambda: me.draft.entries)
        await me.does("ctrl+s", "Name for the policy")
        await me.press("enter")
        await me.until((policies_dir() / "work.toml").exists)
        await me.until(lambda: not me.draft.changed)
        await me.sees("--policy=…/work.toml")


# --- findings ------------------------------------------------------------------------------------


async def test_on_a_low_screen_what_matters_is_in_sight(home: Path) -> None:
    async with planner(home, (50, 12)) as me:
        await me.sees("No policy yet.", "A policy says which tools")
        await me.press("a")
        await me.fill(tools="run_shel")
        await me.sees("there is no tool", "Apply (ctrl+s)")


async def test_a_finding_stands_beside_its_rule_and_a_key_takes_the_better_form(home: Path) -> None:
    policy(
        "work",
        FIRST.replace('"glob"', '"run_shell_command"\ncommandPrefix = "git push"').replace(
            "allow", "deny"
        ),
    )
    async with planner(home) as me:
        await me.sees("! warning", "x to apply")
        before = me.draft.document.text
        await me.press("x")
        await me.until(lambda: me.draft.document.text != before)
        await me.press("u")
        assert me.draft.document.text == before


async def test_a_key_leads_to_the_next_finding(home: Path) -> None:
    policy("work", WORK.replace('"write_file", "replace"', '"writefile"'))
    async with planner(home) as me:
        await me.press("end", "exclamation_mark")
        await me.until(lambda: me.pane.main.rules.chosen)
        chosen = me.pane.main.rules.chosen
        assert chosen is not None
        assert chosen.worst is not None
        await me.sees("writefile")


# --- files ---------------------------------------------------------------------------------------


async def test_another_policy_is_opened_renamed_and_deleted_and_changes_are_asked_about_before(
    home: Path,
) -> None:
    a, _ = policy("a", FIRST), policy("b")
    async with planner(home) as me:
        for leaves in ("escape", "down"):
            if leaves == "escape":
                await me.press("d")
            await me.does("f", "Your gemtui policies", "open now")
            await me.does("down enter", "a has unsaved changes")
            assert me.draft.name == "a"
            await me.press(leaves)
        await me.press("enter")
        await me.until(lambda: me.draft.name == "b")
        assert "glob" not in a.read_text()

        await me.does("f", "open now")
        await me.does("r", "New name for b")
        await me.press("end", "shift+home", "delete", *"daily", "enter")
        await me.until(lambda: me.draft.name == "daily")
        assert sorted(path.name for path in policies_dir().glob("*.toml")) == [
            "a.toml",
            "daily.toml",
        ]
        await me.does("f", "open now")
        await me.does("d", "Delete this policy?")
        await me.press("y")
        await me.until(lambda: not (policies_dir() / "daily.toml").exists())
        await me.sees("No policy yet.")


async def test_a_move_of_the_cursor_that_is_handled_before_a_shorter_policy_is_drawn_is_ignored(
    home: Path,
) -> None:
    policy("a", FIRST)
    async with planner(home) as me:
        await me.until(lambda: me.tools)
        me.pane.editor.draft = Draft()
        me.pane.main.post_message(PolicyMain.Moved())
        await me.press("enter")
        assert me.pane.place is None
        me.pane.show()
        await me.sees("No policy yet.")


async def test_the_cli_own_files_are_saved_on_purpose_with_a_backup(home: Path) -> None:
    folder = home / ".gemini" / "policies"
    folder.mkdir()
    path = folder / "mine.toml"
    path.write_text(FIRST)
    async with planner(home) as me:
        await me.does("f", "Gemini CLI's own folder")
        await me.press("enter")
        await me.until(lambda: me.app.screen is me.pane)
        await me.does("space ctrl+s", "Save mine.toml?")
        await me.press("escape")
        assert path.read_text() == FIRST
        await me.does("ctrl+s", "Save mine.toml?")
        await me.press("down", "enter")
        await me.until(lambda: path.read_text() != FIRST)
        backups = [each for each in folder.iterdir() if each != path]
        assert [each.read_text() for each in backups] == [FIRST]


async def test_a_file_that_may_not_be_written_says_so(home: Path) -> None:
    path = home / "machine.toml"
    path.write_text(FIRST)
    settings = {"adminPolicyPaths": [str(path)]}
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    async with planner(home) as me:
        await me.does("f", "Set by the administrator", "machine")
        await me.does("enter", "read-only: it belongs to the administrator")
        await me.press("d", "ctrl+s")
        await me.is_told("can't be saved")
        assert path.read_text() == FIRST


async def test_a_file_that_changes_is_read_again_unless_there_are_changes_here(home: Path) -> None:
    path = policy("work", FIRST)

    async def asked_to_save(answer: str) -> None:
        await me.does("ctrl+s", "The file has changed on disk")
        await me.press(*answer.split())

    async with planner(home) as me:
        await me.sees("✓ allow")
        path.write_text(WORK)
        await me.until(lambda: len(me.draft.entries) == 4)
        await me.does("d", "1 unsaved change")
        path.write_text(FIRST)
        await me.sees("changed on disk")
        assert len(me.draft.entries) == 3
        await asked_to_save("down enter")
        await me.until(lambda: me.draft.document.text == FIRST)

        await me.press("u")
        await me.until(lambda: len(me.draft.entries) == 3)
        path.write_text(FIRST + "\n")
        await me.sees("changed on disk")
        await asked_to_save("down down enter")
        await me.until(lambda: len(rules(path)) == 3 and not me.draft.changed)

        text = path.read_text()
        path.unlink()
        await me.does("ctrl+s", "The file was deleted")
        assert "Reload it" not in me.text
        await me.press("down", "enter")
        await me.until(path.exists)
        assert path.read_text() == text


# --- leaving, and running ------------------------------------------------------------------------


async def test_other_panes_keep_the_draft_and_quitting_asks_about_it(home: Path) -> None:
    path = policy("work")
    async with planner(home) as me:
        await me.press("enter")
        await me.fill(priority="250")
        await me.does("ctrl+s", "+priority = 250", "−priority = 300")
        await me.does("1", "[1 Sessions]", "3 Policy *")
        await me.does("3", "[3 Policy *]")
        assert me.draft.changed

        await me.does("ctrl+q", "work has unsaved changes")
        await me.press("escape")
        await me.lacks("work has unsaved changes")
        assert me.app.is_running
        await me.does("ctrl+q", "work has unsaved changes")
        await me.press("down", "enter")
        await me.until(lambda: path.read_text() == WORK.replace("300", "250") and me.app._exit)


async def test_the_run_pane_offers_policies_and_a_run_from_here_gets_this_one_with_the_mode(
    home: Path, fake_cli: FakeCli
) -> None:
    path = policy("work")
    fake_cli(f"print:{INIT}", f"print:{OK}")
    async with planner(home) as me:
        await me.does("d 2", "enter starts a run")
        await me.does("ctrl+o", "only the agent's own policies")
        me.app.screen.query_one("#policies", Select).focus()
        await me.does("space down enter ctrl+s", "policy work")
        screen = await me.on(RunScreen)
        assert screen.options.policies == (path,)
        await me.does("'go enter", "work has unsaved changes", "Save and run")
        await me.press("escape")
        assert not me.app.runs.alive

        await me.press("escape", "3")
        await me.until(lambda: me.app.screen is me.pane)
        await me.press("u", "m", "r")
        screen = await me.on(RunScreen)
        assert screen.options.policies == (path,)
        assert screen.options.approval_mode is ApprovalMode.AUTO_EDIT
        assert isinstance(me.app.focused, PromptArea)
        await me.sees("policy work", "mode auto_edit")


async def test_a_new_rule_goes_into_a_policy_of_ours_before_the_user_s_own(home: Path) -> None:
    own = home / ".gemini/policies/own.toml"
    own.parent.mkdir()
    own.write_text(FIRST)
    mine = policy("work", FIRST)
    async with planner(home) as me:
        await me.pane.editor.open(own)
        assert me.draft.name == "own"
        me.app.post_message(AllowCallRequested(Call("glob", {"pattern": "*"}), ()))
        await me.form()
        await me.sees("It will be added to the policy work.")
        await me.press("escape")
        draft = me.app.policies.draft
        assert draft is not None
        assert draft.opened is not None
        assert draft.opened.file.path == mine


REFUSED = {"type": "tool_not_registered", "message": 'Tool "run_shell_command" not found.'}


async def test_a_refused_call_of_a_run_leads_to_the_rule_that_would_allow_it(
    home: Path, fake_cli: FakeCli
) -> None:
    path = policy("work", FIRST)
    (home / ".gemini/trustedFolders.json").write_text(
        json.dumps({str(home / "project"): "TRUST_FOLDER"})
    )
    call = {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t1"}
    given = json.dumps(call | {"parameters": {"command": "pytest -q tests"}})
    result = {"type": "tool_result", "tool_id": "t1", "status": "error", "error": REFUSED}
    steps = (INIT, given, json.dumps(result), OK)
    fake_cli(*("print:" + step.replace("\\", "\\\\") for step in steps))
    async with planner(home) as me:
        await me.does("2 'go enter", "run_shell_command", "1 denied")
        screen = me.app.screen
        assert isinstance(screen, RunScreen)
        await me.until(lambda: screen.run_shown and screen.run_shown.told is not None)
        await me.sees("p allow it")
        screen.view.focus()
        await me.press("p")
        form = await me.form()
        assert form.query_one("#tools", Input).value == "run_shell_command"
        assert form.query_one("#command_prefixes", Input).value.startswith("pytest")
        await me.sees("This rule would allow  run_shell_command  pytest -q tests")
        await me.sees("It will be added to the policy work.")
        assert not me.draft.changed
        await me.press("ctrl+s")
        await me.until(lambda: me.app.screen is screen)
        assert len(rules(path)) == 2
        await me.until(lambda: screen.options.policies == (path,))
        await me.sees("policy work", "1 denied")
        await me.press("p")
        await me.form()
        await me.press("escape")
        await me.until(lambda: me.app.screen is screen)
        assert len(rules(path)) == 2


async def test_a_rule_that_gemini_cli_saved_is_replaced_with_one_that_matches(home: Path) -> None:
    saved = home / ".gemini/policies/auto-saved.toml"
    saved.parent.mkdir()
    prefix = 'toolName = "run_shell_command"\nmodes = ["default"]\ncommandPrefix = ["gradlew"]'
    saved.write_text(FIRST.replace('toolName = "glob"', prefix))
    call = logs.call("c", name="run_shell_command", args={"command": "./gradlew test"})
    stores.saying(
        home / ".gemini", "1", logs.user("u", "build"), logs.gemini("g", "", toolCalls=[call])
    )
    async with planner(home, WIDE) as me:
        await me.pane.editor.open(saved)
        await me.sees("1 similar call such as:", 'x to apply: write "./gradlew"')
        await me.does("x", 'prefix "./gradlew"')
        await me.lacks("similar call")


async def test_a_large_policy_is_edited_without_holding_up_the_screen(home: Path) -> None:
    policy("work", "\n".join(FIRST.replace("7", str(number % 999)) for number in range(400)))
    async with planner(home) as me:
        await me.sees("400 rules")
        await me.press("d", "end", "c")
        await me.until(lambda: "duplicate" in me.draft._steps[-1].what)
        assert len(me.draft.entries) == 400
        await me.press("u", "u")
        await me.until(lambda: not me.draft.changed)
