"""Worktrees at the keys: run in one, apply one, remove them."""

from __future__ import annotations

from pathlib import Path

from gemtui.paths import make_own_folder, runs_dir
from gemtui.policy.file.policy_files import path_of
from gemtui.runs.listing import list_runs
from gemtui.runs.worktrees import make_worktree
from gemtui.ui.run.worktrees_screen import WorktreesScreen
from gemtui.worktree_records import list_worktrees
from tests.checkpoints.projects import put, tree_of
from tests.checkpoints.test_repositories import repository
from tests.fake_cli import INIT, OK, FakeCli, says
from tests.ui.people import BOTH, Person
from tests.ui.run.test_screen import runner


async def opened(me: Person) -> WorktreesScreen:
    await me.command("worktrees")
    await me.on(WorktreesScreen)
    screen = me.app.screen
    assert isinstance(screen, WorktreesScreen)
    await me.until(lambda: screen.rows.empty != "reading")
    return screen


async def test_a_run_in_a_worktree_is_applied_and_its_worktree_removed(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    repository(project, other="other\n")
    before = tree_of(project)
    fake_cli(f"print:{INIT}", "make:made.txt=made", says("Written."), f"print:{OK}")
    async with runner(home, project, BOTH) as me:
        await me.command("worktree")
        await me.until(lambda: me.pane.options.worktree)
        await me.ask("Make it")
        await me.ended()
        (worktree,) = list_worktrees()
        assert me.pane.run_shown is not None
        assert me.pane.run_shown.cwd == worktree.folder
        await me.is_told(f"working in the new worktree {worktree.name}")
        assert tree_of(project) == before
        await me.ask("And on")  # in the same session and worktree
        await me.all_ended(2)
        assert {run.cwd for run in list_runs(runs_dir())} == {str(worktree.folder)}
        screen = await opened(me)
        await me.sees("added  made.txt", worktree.name)
        await me.does("a", "Apply?", "write  made.txt")
        await me.press("y")
        await me.is_told("Applied: 1 file changed")
        assert (project / "made.txt").read_text() == "made\n"
        await me.until(lambda: screen.rows.chosen and screen.rows.chosen.files == "applied")
        put(worktree.tree, b"other", b"later\n")
        await me.does("d", "Remove this worktree?", "would be lost: other.")
        await me.does("y", "No worktrees.")
        assert not worktree.tree.exists()
        await me.press("escape", "ctrl+n")
        assert me.pane.options.cwd == project


async def test_the_changes_of_the_worktree_under_the_cursor_are_shown_without_escapes(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    del fake_cli
    repository(project, other="other\n")
    for word in ("left", "right"):
        tree = make_worktree(project, f"The {word} one")[0].tree
        put(tree, b"other", f"{word} \x1b[2J\n".encode())
    async with runner(home, project, BOTH) as me:
        screen = await opened(me)
        await me.until(lambda: "+ right" in screen.panes.side.text)
        await me.press("down")
        await me.until(lambda: "+ left" in screen.panes.side.text)
        assert "\x1b" not in screen.panes.side.text
        await me.press("tab")
        assert screen.panes.side.has_focus
        await me.press("escape", "escape")
        await me.until(lambda: me.app.screen is me.pane)


async def test_the_same_prompt_goes_to_other_models_and_policies(
    home: Path, project: Path, fake_cli: FakeCli
) -> None:
    repository(project)
    policies = [path_of(name) for name in ("calm", "strict")]
    for path in policies:
        make_own_folder(path.parent)
        path.write_text("[[rule]]\ntoolName = 'glob'\ndecision = 'allow'\npriority = 1\n")
    fake_cli(f"print:{INIT}", says("Done."), f"print:{OK}")
    async with runner(home, project) as me:
        await me.command("worktree")
        await me.ask("Make it")
        await me.ended()
        await opened(me)
        await me.does("m", "Models, separated by commas")
        await me.type("pro, flash")
        await me.press("enter")
        await me.is_told("Started 2 runs")
        await me.ended()
        runs = list_runs(runs_dir())
        assert {(run.prompt, run.model) for run in runs} == {
            ("Make it", None),
            ("Make it", "pro"),
            ("Make it", "flash"),
        }
        assert len({run.cwd for run in runs}) == len(list_worktrees()) == 3
        await opened(me)
        await me.does("p", "Policies, separated by commas", "calm, strict")
        await me.press("end")
        await me.type(", lax")
        await me.does("enter", "there is no policy lax")
        await me.press(*["backspace"] * 5, "enter")
        await me.all_ended(5)
        chosen = {run.policies: run.prompt for run in list_runs(runs_dir())}
        assert chosen == {(): "Make it"} | {(path,): "Make it" for path in policies}
        await opened(me)
        await me.sees("strict", "calm", "flash")
